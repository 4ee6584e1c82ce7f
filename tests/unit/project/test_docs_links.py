"""Relative links of all Markdown pages lead to existing files and headings; the page of commands is generated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from waygraph.cli.reference import reference

ROOT = Path(__file__).parents[3]
PAGES = [
    page
    for page in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") or part in {"node_modules", "site"} for part in page.relative_to(ROOT).parts)
]
#: Pages that only the built site has.
GENERATED = {ROOT / "docs" / "cli.md": reference()}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, by GitHub's rules."""
    text = GENERATED[page] if page in GENERATED else page.read_text()
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_existing_files_and_headings(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        generated = target in GENERATED and page.parent == ROOT / "docs"
        missing_anchor = anchor and target.suffix == ".md" and anchor not in anchors(target)
        if not (generated or target.exists()) or missing_anchor:
            broken.append(link)
    assert broken == []


def test_the_generated_page_has_all_commands_and_exit_codes() -> None:
    assert {"waygraph-index", "waygraph-store-verify", "exit-codes"} <= anchors(ROOT / "docs" / "cli.md")
