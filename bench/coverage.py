"""Benchmark of coverage: how many kinds of pages an exploration finds within a budget of states, by its order.

Explores each site in every order and mode with the same budget, in one run of this command:

    python -m bench.coverage [--sites generated,gentelella] [--orders novelty] [--states 250] [--walks 50]
                             [--kept DIR] [--save]

`--kept` writes the counts of each exploration into a folder and reads them from there in a later run, so that a command
that was interrupted goes on. `--walks` walks an unguarded page between random pairs of states of each map, without
loading a URL, and counts the arrivals. `--save` replaces the results of the same site, order and limit of states in
bench/results/coverage.json.

Of the generated site (`bench.coverage_site`) all kinds are known. Of other sites the kinds are the URL templates that
any of the explorations found, and for folders of files the pages in the folder. The benchmark also samples pairs of
states and counts those between which a path without loading a URL is known, with and without the edges that were never
performed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.coverage_site import CoverageSite, all_kinds, kind_of
from bench.real_sites import NotAvailable, Served
from bench.result_files import RESULTS, run_info, write_result
from bench.site_walks import BROWSER, walks_without_goto
from bench.sites import SITES
from waygraph.core.settings import Settings
from waygraph.index.graph import InteractionGraph
from waygraph.index.store import Store
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.identity.url_groups import group_of
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap

#: Serves a site from a scratch folder.
Site = Callable[[Path], AbstractContextManager[Served]]
#: Order and mode of explorations by name.
ORDERS = {"novelty": ("novelty", "full"), "breadth": ("breadth", "full"), "skeleton": ("breadth", "skeleton")}
STATES = (50, 100, 250)
SEED, PAIRS = 2026, 500


@dataclass
class Explored:
    """One exploration.

    Attributes
    ----------
    site, order, mode
        What was explored, and how.
    states, edges, unperformed_edges
        Size of the map.
    seconds
        Duration.
    activations
        Performed actions.
    kinds
        Number of kinds among the first 50, 100 and 250 states.
    path_share
        Share of sampled pairs of states with a path that loads no URL; all edges, and performed edges only.
    limit
        Limit of states.
    found
        Names of all kinds found.
    stopped_by
        The limit that ended the exploration; empty if nothing was left to do.
    walks
        Fields of `Arrivals`; empty if nothing was walked.
    """

    site: str
    order: str
    mode: str
    states: int
    edges: int
    unperformed_edges: int
    seconds: float
    activations: int
    kinds: dict[int, int]
    path_share: dict[str, float]
    limit: int
    found: list[str] = field(default_factory=list)
    stopped_by: str = ""
    walks: dict[str, Any] = field(default_factory=dict)


@contextmanager
def generated(_: Path) -> Iterator[Served]:
    """Serve the generated site."""
    with CoverageSite() as site:
        yield Served(site.url, Path("/dev/null"))


def explore(
    name: str,
    served: Served,
    order: str,
    mode: str,
    *,
    arguments: argparse.Namespace,
    kind: Callable[[str], str | None],
) -> Explored:
    """Explore a site, count what was found, and walk over the map.

    Parameters
    ----------
    name, served
        The site.
    order, mode
        Settings of the exploration.
    arguments
        Limits of states, depth and duration, and the number of walks.
    kind
        Returns the kind of a page by its URL; None for pages that do not count.

    Returns
    -------
    Explored
        The counts.
    """
    settings = Settings(
        browser=BROWSER,
        explore={
            "depth": arguments.depth,
            "max_states": arguments.states,
            "max_seconds": arguments.seconds,
            "order": order,
            "mode": mode,
            "robots": False,
            "storage_state": served.storage_state,
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder, create=True)
        began = time.monotonic()
        capture = asyncio.run(explore_site(served.start, settings=settings, blobs=store.blobs))
        seconds = round(time.monotonic() - began, 1)
        walks = walk(capture, store, served, settings, arguments.walks) if arguments.walks else {}
    urls = [node.url for node in capture.graph.nodes.values()]
    found = {kind(url) for url in urls} - {None}
    edges = list(capture.graph.edges)
    return Explored(
        site=name,
        order=order,
        mode=mode,
        states=len(urls),
        edges=len(edges),
        unperformed_edges=sum(edge.inherited for edge in edges),
        seconds=seconds,
        activations=capture.report.counters.get("explore/activations", 0),
        kinds={
            count: len({kind(url) for url in urls[:count]} - {None}) for count in STATES if count <= arguments.states
        },
        path_share={"all": path_share(capture, inherited=True), "performed": path_share(capture, inherited=False)},
        limit=arguments.states,
        found=sorted(map(str, found)),
        stopped_by=capture.report.stopped_by,
        walks=walks,
    )


def walk(capture: SiteCapture, store: Store, served: Served, settings: Settings, count: int) -> dict[str, Any]:
    """Publish a map and walk between random pairs of its states without loading a URL."""
    store.publish(draft_from_capture(capture, settings))
    with StoreMap(store.location) as source:
        return asdict(asyncio.run(walks_without_goto(capture, source, served, count)))


def explored(
    name: str, source: Site, order: str, mode: str, *, arguments: argparse.Namespace, kind: Callable[[str], str | None]
) -> Explored:
    """Serve and explore a site, or read what an interrupted run counted."""
    kept: Path | None = arguments.kept and arguments.kept / f"{name}-{order}-{mode}-{arguments.states}.json"
    if kept is not None and kept.exists():
        counted = Explored(**json.loads(kept.read_text(encoding="utf-8")))
        return replace(counted, kinds={int(count): kinds for count, kinds in counted.kinds.items()})
    # Served anew for each exploration, so that none finds what another one left behind.
    with source(arguments.scratch) as served:
        result = explore(name, served, order, mode, arguments=arguments, kind=kind)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(result)), encoding="utf-8")
    return result


def template_of(url: str) -> str:
    """Return the template of a URL without its host, whose port differs between two explorations.

    >>> template_of("http://127.0.0.1:8080/orders/17/edit")
    'orders/#/edit'
    """
    return group_of(url).partition("//")[2].partition("/")[2]


def path_share(capture: SiteCapture, *, inherited: bool) -> float:
    """Return the share of random pairs of states between which edges lead, without loading a URL."""
    chance = random.Random(SEED)
    nodes = list(capture.graph.nodes)
    if len(nodes) < 2:
        return 0.0
    reached = {node: _reachable(capture.graph, node, inherited=inherited) for node in nodes}
    pairs = [chance.sample(nodes, 2) for _ in range(PAIRS)]
    return round(sum(target in reached[source] for source, target in pairs) / PAIRS, 3)


def _reachable(graph: InteractionGraph, start: str, *, inherited: bool) -> set[str]:
    known, queue = {start}, [start]
    while queue:
        for edge in graph.edges_from(queue.pop()):
            if (inherited or not edge.inherited) and not edge.is_state_changing and edge.target not in known:
                known.add(edge.target)
                queue.append(edge.target)
    return known


class Explorations:
    """Results of explorations by site, order, mode and limit of states.

    Parameters
    ----------
    rows
        Results as JSON objects.
    """

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = {self._key(row): row for row in rows}

    @classmethod
    def load(cls, path: Path) -> Explorations:
        """Read saved results."""
        return cls(json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else [])

    @staticmethod
    def _key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["site"], row["order"], row["mode"], row["limit"]

    def replace(self, result: Explored) -> None:
        """Add a result, in place of an earlier one with the same settings."""
        row = {**asdict(result), **run_info()}
        self._rows[self._key(row)] = row

    def kinds_of(self, site: str) -> int:
        """Return the number of kinds of a site: those that any of the explorations found."""
        if site == "generated":
            return len(all_kinds())
        return len({kind for row in self._rows.values() if row["site"] == site for kind in row["found"]})

    def save(self, path: Path) -> None:
        """Write all results, each with the number of kinds of its site."""
        rows = [{**row, "of": self.kinds_of(row["site"])} for _, row in sorted(self._rows.items())]
        write_result(path, {"results": rows})


def table(results: Sequence[Explored], total: dict[str, int]) -> str:
    """Return the results as a Markdown table."""
    counts = "".join(f" kinds at {count} |" for count in STATES)
    lines = [
        f"| site | order | states |{counts} of | actions | s | pairs with a path (performed edges only) | arrived |",
        "| --- | --- | --- |" + " --- |" * (len(STATES) + 5),
    ]
    for r in results:
        name = "skeleton" if r.mode == "skeleton" else r.order
        kinds = "".join(f" {r.kinds.get(count, '')} |" for count in STATES)
        share = f"{r.path_share['all']:.0%} ({r.path_share['performed']:.0%})"
        walks = f"{r.walks['arrived']} of {r.walks['walked']}" if r.walks else ""
        lines.append(
            f"| {r.site} | {name} | {r.states} |{kinds} {total[r.site]} | {r.activations} | {r.seconds:.0f} | {share} |"
            f" {walks} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("generated", *(site.name for site in SITES))
    parser.add_argument("--sites", default="generated", help=f"comma-separated: {', '.join(names)}")
    parser.add_argument("--states", type=int, default=max(STATES), help="limit of states of each exploration")
    parser.add_argument("--seconds", type=int, default=480, help="limit of the duration of each exploration")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument(
        "--orders", default="novelty,breadth,skeleton", help="comma-separated: novelty, breadth, skeleton"
    )
    parser.add_argument("--walks", type=int, default=0, help="number of walks over each map; 0: none")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    parser.add_argument("--kept", type=Path, help="folder in which the counts of each exploration are kept")
    parser.add_argument(
        "--save", action="store_true", help="replace the results of these sites in bench/results/coverage.json"
    )
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    sources = {"generated": generated, **{site.name: site.get for site in SITES}}
    saved = Explorations.load(RESULTS / "coverage.json")
    results: list[Explored] = []
    for name in arguments.sites.split(","):
        kind: Callable[[str], str | None] = kind_of if name == "generated" else template_of
        for order, mode in map(ORDERS.__getitem__, arguments.orders.split(",")):
            try:
                results.append(explored(name, sources[name], order, mode, arguments=arguments, kind=kind))
            except NotAvailable as error:
                print(f"{name}: {error}")
                break
            saved.replace(results[-1])
            print(f"{name} {order} {mode}: {results[-1].kinds} {results[-1].walks}", flush=True)
    print(table(results, {name: saved.kinds_of(name) for name in arguments.sites.split(",")}))
    if arguments.save:
        saved.save(RESULTS / "coverage.json")


if __name__ == "__main__":
    main()
