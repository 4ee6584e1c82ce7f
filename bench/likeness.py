"""How much does a page look like its recorded state when it is seen again, and how much like another one?

Sites are explored; then each state is walked to in a browser of its own, with all its timers, and what it shows is
compared with the evidence of its state and of all others. Gives the thresholds of `index.graph.recognition`:

    python -m bench.likeness [--site URL_OR_FOLDER ...] [--states 60] [--save]

Without sites: the fixture pages that never look the same twice, and the demo shop. A folder is served as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from index.graph import Evidence, InteractionGraph, is_equivalent, site_key
from index.graph.recognition import ELEMENT_SHARE, FEATURE_SHARE, share
from index.store import Store
from pipeline.browser.features import features
from pipeline.browser.launch import launch
from pipeline.browser.snapshot import Lens, Snapshot
from pipeline.browser.view import PageView
from pipeline.explore import explore_site
from pipeline.jobs.publishing.draft import draft_of
from tests.sites.noise import noise_pages
from tests.sites.server import FixtureServer
from waygraph.cli.teleport import new_page
from waygraph.demo_site import DemoSite
from waygraph.local import StoreMap
from waygraph.settings import Settings
from waygraph.teleport import teleport


@dataclass(frozen=True)
class Pair:
    """A look at one state against the evidence of a state."""

    same: bool
    same_url: bool
    features: float
    elements: float
    accepted: bool


@dataclass(frozen=True)
class Row:
    """What was measured on one site."""

    site: str
    states: int
    outcomes: dict[str, int]
    same_features: list[float]
    same_elements: list[float]
    other_features: list[float]
    other_elements: list[float]
    siblings: int
    accepted_siblings: int


async def measure(name: str, url: str, most: int) -> Row:
    """Explore, walk to every state, compare."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(store=folder, explore={"robots": False, "depth": 3, "max_states": 2 * most, "workers": 2})
        store = Store.open(folder, create=True)
        capture = await explore_site(url, settings=settings, blobs=store.blobs)
        store.publish(draft_of(capture, settings, pages={}))
        graph = capture.graph
        pairs: list[Pair] = []
        outcomes: Counter[str] = Counter()
        chosen = list(graph.nodes)[:: max(1, len(graph) // most)][:most]
        with StoreMap(folder) as maps:
            async with launch(settings.browser) as browser:
                for target in chosen:
                    page = await new_page(browser, maps.site(capture.site), settings)
                    result = await teleport(page, maps, capture.site, target)
                    outcomes[result.outcome] += 1
                    if not result.arrived:
                        print(f"  {graph.nodes[target].url}: {result.problem}")
                    if result.arrived:
                        lens = Lens.of(settings.browser, settings.explore)
                        seen = await PageView(result.page, lens, settings.browser, own=False).observe()
                        pairs += compare(seen, target, graph, capture.recognition.evidence)
                    await page.context.close()
    return row(name, len(chosen), outcomes, pairs)


def compare(seen: Snapshot, target: str, graph: InteractionGraph, evidence: Mapping[str, Evidence]) -> list[Pair]:
    """A look against all states that have evidence, but not one whose very id it has."""
    shown, elements = features(seen), {element[:12] for element in seen.structure}
    found = []
    for node in graph.nodes.values():
        its = evidence.get(node.id)
        if its is None or (node.id == seen.id) != (node.id == target):
            continue
        same_url = node.url == seen.url
        accepted = is_equivalent(its, node.url, seen.url, shown, seen.structure)
        pair = Pair(node.id == target, same_url, share(its.features, shown), share(its.elements, elements), accepted)
        found.append(pair)
    return found


def row(name: str, states: int, outcomes: Counter[str], pairs: Sequence[Pair]) -> Row:
    """Sum up a site."""
    same = [pair for pair in pairs if pair.same]
    other = [pair for pair in pairs if not pair.same and not pair.same_url]
    siblings = [pair for pair in pairs if not pair.same and pair.same_url]
    return Row(
        site=name,
        states=states,
        outcomes=dict(outcomes),
        same_features=spread([pair.features for pair in same]),
        same_elements=spread([pair.elements for pair in same]),
        other_features=spread([pair.features for pair in other]),
        other_elements=spread([pair.elements for pair in other]),
        siblings=len(siblings),
        accepted_siblings=sum(pair.accepted for pair in siblings),
    )


def spread(shares: Sequence[float]) -> list[float]:
    """Least, 5%, median, 95% and most."""
    ranked = sorted(shares)
    return (
        [round(ranked[min(len(ranked) - 1, int(q * len(ranked)))], 2) for q in (0, 0.05, 0.5, 0.95, 1)]
        if ranked
        else []
    )


def serve(stack: ExitStack, site: str) -> str:
    """The URL of a site, which may have to be served first."""
    if not Path(site).is_dir():
        return site
    root = Path(site)
    pages = {f"/{file.relative_to(root).as_posix()}": file for file in root.rglob("*") if file.is_file()}
    start = "/index.html" if "/index.html" in pages else next(path for path in sorted(pages) if path.endswith(".html"))
    return stack.enter_context(FixtureServer(pages)).at(start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", action="append", default=[], help="URL, or folder of static pages")
    parser.add_argument("--states", type=int, default=60, help="states of each site to walk to")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    rows = []
    with ExitStack() as stack:
        sites = {site if Path(site).is_dir() else site_key(site): serve(stack, site) for site in options.site}
        if not sites:
            sites["noise"] = stack.enter_context(FixtureServer(noise_pages())).url
            sites["demo shop"] = stack.enter_context(DemoSite()).url
        for name, url in sites.items():
            rows.append(found := asyncio.run(measure(name, url, options.states)))
            print(f"{name}: {found.states} states, {found.outcomes}")
            for label in ("same_features", "other_features", "same_elements", "other_elements"):
                print(f"  {label:<15} min, 5%, median, 95%, max: {getattr(found, label)}")
            print(f"  other states at the same URL taken for the target: {found.accepted_siblings} of {found.siblings}")
    print(f"thresholds: {FEATURE_SHARE} of the features, {ELEMENT_SHARE} of the elements")
    if options.save:
        document = {
            "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}",
            "rows": [asdict(found) for found in rows],
        }
        path = Path(__file__).parent / "results" / "likeness.json"
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        print(f"saved to {path}")


if __name__ == "__main__":
    main()
