"""Similarity of a page to its recorded state when it is visited again, and to all other states.

Sites are explored; then each state is visited in its own browser, with all timers running, and the page is
compared with the evidence of its state and of all others. Gives the thresholds of `waygraph.index.graph.recognition`:

    python -m bench.likeness [--site URL_OR_FOLDER ...] [--states 60] [--save]

Without sites: the fixture pages with noise, and the demo shop. A folder is served as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.result_files import RESULTS, quantiles, run_info, write_result
from tests.sites.noise import noise_pages
from tests.sites.server import FixtureServer
from waygraph.cli.browser_page import new_mapped_page
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.demo_site import DemoSite
from waygraph.index.graph import Evidence, InteractionGraph, is_equivalent
from waygraph.index.graph.recognition import ELEMENT_SHARE, FEATURE_SHARE, shared_fraction
from waygraph.index.store import Store
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.snapshot import Snapshot, SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport


@dataclass(frozen=True)
class Pair:
    """A snapshot of one state compared with the evidence of a state."""

    same: bool
    same_url: bool
    features: float
    elements: float
    accepted: bool


@dataclass(frozen=True)
class Row:
    """Results of one site: quantiles (minimum, 5%, median, 95%, maximum) of shared fractions."""

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
        store.publish(draft_from_capture(capture, settings))
        graph = capture.graph
        pairs: list[Pair] = []
        outcomes: Counter[str] = Counter()
        chosen = list(graph.nodes)[:: max(1, len(graph) // most)][:most]
        with StoreMap(folder) as maps:
            async with launch(settings.browser) as browser:
                for target in chosen:
                    page = await new_mapped_page(browser, maps.site(capture.site), settings)
                    result = await teleport(page, maps, capture.site, target)
                    outcomes[result.outcome] += 1
                    if not result.arrived:
                        print(f"  {graph.nodes[target].url}: {result.problem}")
                    if result.arrived:
                        options = SnapshotOptions.from_settings(settings.browser, settings.explore)
                        seen = await PageView(result.page, options, settings.browser, owned=False).observe()
                        pairs += compare(seen, target, graph, capture.recognition.evidence)
                    await page.context.close()
    return row(name, len(chosen), outcomes, pairs)


def compare(seen: Snapshot, target: str, graph: InteractionGraph, evidence: Mapping[str, Evidence]) -> list[Pair]:
    """Compare a snapshot with all states that have evidence, except the state with the same id."""
    shown, elements = features(seen), {element[:12] for element in seen.structure}
    found = []
    for node in graph.nodes.values():
        its = evidence.get(node.id)
        if its is None or (node.id == seen.id) != (node.id == target):
            continue
        same_url = node.url == seen.url
        accepted = is_equivalent(its, node.url, seen.url, shown, seen.structure)
        pair = Pair(
            node.id == target,
            same_url,
            shared_fraction(its.features, shown),
            shared_fraction(its.elements, elements),
            accepted,
        )
        found.append(pair)
    return found


def row(name: str, states: int, outcomes: Counter[str], pairs: Sequence[Pair]) -> Row:
    """Summarise the pairs of a site."""
    same = [pair for pair in pairs if pair.same]
    other = [pair for pair in pairs if not pair.same and not pair.same_url]
    siblings = [pair for pair in pairs if not pair.same and pair.same_url]
    spread = partial(quantiles, shares=(0, 0.05, 0.5, 0.95, 1), digits=2)
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


def serve(stack: ExitStack, site: str) -> str:
    """Return the URL of a site; serve the site first if it is local."""
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
            **run_info(),
            "rows": [asdict(found) for found in rows],
        }
        write_result(RESULTS / "likeness.json", document)


if __name__ == "__main__":
    main()
