"""Benchmark of refreshes: browser CPU as a share of the first exploration, in one run, on the same site.

    python -m bench.refresh            prints
    python -m bench.refresh --save     and writes bench/results/refresh.json

The demo shop unchanged, in default mode and `--full`; and a generated site of which 5% of the pages changed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from bench.cpu import cpu_by_kind, used_since
from bench.result_files import RESULTS, run_info, write_result
from tests.blobs import MemoryBlobs
from tests.browsers import LOOPBACK_ONLY
from waygraph.core.settings import RefreshSettings, Settings
from waygraph.demo_site import DemoSite
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.index.graph.export import to_json
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.explore.refresh.exploration_record import ExplorationRecord
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.sample import RefreshPlan, plan_refresh

SETTINGS = Settings(browser=LOOPBACK_ONLY, explore={"depth": 3, "workers": 2, "trap_budget": 1000})
#: Kinds of processes (`bench.cpu`) that are the browser.
BROWSER = ("browser", "renderer", "gpu", "network", "zygote")
SECTIONS = 8
WORDS = ("apple", "river", "candle", "stone", "violin", "harbour", "ladder", "meadow", "pepper", "willow")


class Changing(LocalServer):
    """Sections with a menu each, and pages below them; `changed` pages have another paragraph."""

    def __init__(self, pages: int) -> None:
        super().__init__(self._answer)
        self.pages = pages
        self.changed: set[str] = set()

    def paths(self) -> list[str]:
        """All pages below sections."""
        return [f"/{n % SECTIONS}/{n}" for n in range(self.pages)]

    def _answer(self, request: Request) -> Response:
        path = request.path
        parts = [part for part in path.split("/") if part]
        if parts and path not in {*self.paths(), *(f"/{n}" for n in range(SECTIONS))}:
            return Response("not here", status=404)
        below = [p for p in self.paths() if p.startswith(f"/{parts[0]}/")] if len(parts) == 1 else []
        links = below if parts else [f"/{n}" for n in range(SECTIONS)]
        words = " ".join(WORDS[(sum(map(ord, path)) * k + len(path)) % len(WORDS)] for k in (1, 3, 7))
        menu = (
            "<button onclick=\"o.toggleAttribute('hidden')\">Options</button><p id=o hidden>Opened</p>" if below else ""
        )
        lately = "<p>This was written lately.</p>" if path in self.changed else ""
        items = "".join(f"<li><a href={link}>Page {link}</a></li>" for link in links)
        return Response(f"<!doctype html><title>{path}</title><h1>{path} {words}</h1>{menu}{lately}<ul>{items}</ul>")


async def measured(
    site: LocalServer, blobs: MemoryBlobs, prior: PriorExploration | None = None
) -> tuple[SiteCapture, float]:
    """Explore once, in a browser of its own that is started before and ends after measuring."""
    async with BrowserPool(partial(launch, SETTINGS.browser, guarded=True)) as pool:
        before = cpu_by_kind()
        capture = await explore_site(site.url, settings=SETTINGS, blobs=blobs, pool=pool, prior=prior)
        used = used_since(before)
    return capture, sum(used[kind] for kind in BROWSER)


def recall_of(capture: SiteCapture, blobs: MemoryBlobs, *, full: bool) -> PriorExploration:
    """Return the recall of a refresh with the default settings."""
    record, refresh = ExplorationRecord.parse(blobs[capture.report.record]), RefreshSettings()
    plan = (
        RefreshPlan()
        if full
        else plan_refresh(record, share=refresh.share, budget_ms=1000 * refresh.budget_seconds, seed="1")
    )
    return PriorExploration(record, plan, url_policy=SETTINGS.explore.url_policy, grace=refresh.grace, name="bench")


def row(name: str, first: tuple[SiteCapture, float], again: tuple[SiteCapture, float]) -> dict[str, Any]:
    """One refresh beside the first exploration."""
    (before, first_s), (after, again_s) = first, again
    was = {seen.content_hash for seen in before.observations.values()}
    return {
        "what": name,
        "states": len(after.graph),
        "first_browser_cpu_s": round(first_s, 2),
        "refresh_browser_cpu_s": round(again_s, 2),
        "share": round(again_s / first_s, 3),
        "same_map": _export(before) == _export(after),
        "contents_that_are_new": sum(seen.content_hash not in was for seen in after.observations.values()),
        "loads": dict(after.refresh.loads),
        "actions": dict(after.refresh.actions),
        "stale": after.refresh.stale,
        "stale_at_most": after.refresh.stale_at_most,
    }


def _export(capture: SiteCapture) -> dict[str, Any]:
    return to_json(capture.site, 1, capture.graph, recognition=capture.recognition)


async def run(pages: int) -> list[dict[str, Any]]:
    """All rows."""
    rows, blobs = [], MemoryBlobs()
    with DemoSite() as shop:
        first = await measured(shop, blobs)
        for name, full in (("demo shop, unchanged", False), ("demo shop, unchanged, --full", True)):
            rows.append(row(name, first, await measured(shop, blobs, recall_of(first[0], blobs, full=full))))
    with Changing(pages) as site:
        first = await measured(site, blobs)
        rows.append(
            row("generated, unchanged", first, await measured(site, blobs, recall_of(first[0], blobs, full=False)))
        )
        site.changed = set(site.paths()[::20])
        for name, full in (("generated, 5% changed", False), ("generated, 5% changed, --full", True)):
            found = row(name, first, await measured(site, blobs, recall_of(first[0], blobs, full=full)))
            rows.append({**found, "changed_pages": len(site.changed)})
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=120, help="pages of the generated site")
    parser.add_argument("--save", action="store_true", help="write bench/results/refresh.json")
    chosen = parser.parse_args(arguments)
    document = {
        "rows": asyncio.run(run(chosen.pages)),
        "share": RefreshSettings().share,
        **run_info(),
    }
    print(json.dumps(document, indent=2))
    if chosen.save:
        write_result(RESULTS / "refresh.json", document)


if __name__ == "__main__":
    main()
