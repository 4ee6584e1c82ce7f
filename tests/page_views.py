"""What tests of pages in a browser share: sizes, pictures, and the check of accessibility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, ViewportSize

AXE = Path(__file__).parents[1] / "serve" / "ui" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)


def take_pictures(page: Page, folder: Path, name: str) -> None:
    """Leave pictures of a view in both sizes and colours."""
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        for colours in ("dark", "light"):
            page.emulate_media(color_scheme=colours)
            page.screenshot(path=folder / f"{name}-{size['width']}-{colours}.png")


def serious_violations(page: Page) -> list[Any]:
    """Return what axe-core finds that is serious or critical, as pairs of the rule and the element."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 10
    return [
        (each["id"], node["html"])
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]
