"""Benchmark of turns: kinds of pages found at several sites under one budget of states, in turns and in list order.

Two sites of a list and thousands of alike records are listed before the site of `bench.coverage_site`, which has 70
kinds. All are explored with the same budget, of which one site may use five eighths: in list order, in turns, and in
turns with all sites at once. Kinds and states are those of the maps that readers get when the budget is spent; in list
order these are the maps of sites that were explored to their own limit:

    python -m bench.turns [--states 120] [--save]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from bench.coverage_site import CoverageSite, kind_of
from bench.result_files import RESULTS, run_info, write_result
from bench.site_walks import BROWSER
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.index.store import Store
from waygraph.pipeline.jobs import run_index
from waygraph.pipeline.jobs.events import SitePhase

RECORDS, ROWS = 2_000, 40
#: Name, states per turn, and sites at once of each way to divide the budget.
WAYS = (("list order", 0, 1), ("turns", 20, 1), ("turns, all at once", 20, 3))
_SYLLABLES = [consonant + vowel for consonant in "bdfklmnprst" for vowel in "aeiou"]


@dataclass
class Divided:
    """One run over all sites.

    Attributes
    ----------
    way, states_per_turn, sites_at_once
        How the budget was divided.
    kinds
        Number of kinds in the maps, in the order of the sites.
    states
        Number of states in the maps.
    explorations
        Number of explorations of each site: begun or resumed.
    seconds
        Duration, with the start of Ray.
    """

    way: str
    states_per_turn: int
    sites_at_once: int
    kinds: list[int]
    states: list[int]
    explorations: list[int]
    seconds: float


def _name(number: int) -> str:
    """Return the name of a record. It has no number, so that URLs of records have no common template."""
    first, second = divmod(number % RECORDS, len(_SYLLABLES))
    return f"{_SYLLABLES[first]}{_SYLLABLES[second]}"


_NUMBERS = {_name(number): number for number in range(RECORDS)}


def _links(numbers: Iterable[int]) -> str:
    return "".join(f'<li><a href="/{_name(number)}">{_name(number)}</a>' for number in numbers)


def record_page(request: Request) -> Response:
    """Return a page of a site that has a list of records and nothing else."""
    name = request.path.strip("/")
    number = _NUMBERS.get(name)
    if number is not None:
        main = f"<h1>{name}</h1><p>Record {number}.</p><h2>Related</h2><ul>{_links(range(number + 1, number + 9))}</ul>"
    elif not name:
        main = f"<h1>Records</h1><ul>{_links(range(0, RECORDS, RECORDS // ROWS))}</ul>"
    else:
        return Response("<h1>Not found</h1>", status=404)
    return Response(f"<!doctype html><html lang=en><title>Records</title><body><a href='/'>All</a>{main}</body></html>")


def record_kind(target: str) -> str | None:
    """Return the kind of a page of such a site."""
    return "list" if target == "/" else "record"


def divide(way: str, states_per_turn: int, sites_at_once: int, *, states: int) -> Divided:
    """Explore the sites with one budget.

    Parameters
    ----------
    way
        Name of the run.
    states_per_turn, sites_at_once
        Settings of the run.
    states
        The budget.

    Returns
    -------
    Divided
        What is in the maps.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="waygraph-turns-"))
        records = [stack.enter_context(LocalServer(record_page)) for _ in range(2)]
        servers: Sequence[LocalServer] = [*records, stack.enter_context(CoverageSite())]
        kinds: Sequence[Callable[[str], str | None]] = [record_kind, record_kind, kind_of]
        settings = Settings(
            store=f"{folder}/maps",
            browser=BROWSER,
            explore={"robots": False, "max_states": states * 5 // 8},
            jobs={
                "max_total_states": states,
                "states_per_turn": states_per_turn,
                "sites_at_once": sites_at_once,
            },
        )
        begun: list[str] = []

        def note(event: object) -> None:
            if isinstance(event, SitePhase) and event.phase == "exploring":
                begun.append(event.site)

        started = time.monotonic()
        run_index([server.url for server in servers], settings=settings, on_event=note)
        seconds = round(time.monotonic() - started, 1)
        store, sites = Store.open(settings.store), [site_key(server.url) for server in servers]
        found = [_targets(store, site) for site in sites]
        return Divided(
            way=way,
            states_per_turn=states_per_turn,
            sites_at_once=sites_at_once,
            kinds=[len({kind(target) for target in of} - {None}) for kind, of in zip(kinds, found, strict=True)],
            states=list(map(len, found)),
            explorations=[begun.count(site) for site in sites],
            seconds=seconds,
        )


def _targets(store: Store, site: str) -> list[str]:
    """Return path and query of every state of the published map, none if there is no map."""
    if store.current(site) is None:
        return []
    urls = (urlsplit(node.url) for node in store.read(site).graph.nodes.values())
    return [f"{url.path}?{url.query}" if url.query else url.path for url in urls]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=120, help="limit of states of each run")
    parser.add_argument("--save", action="store_true", help="replace bench/results/turns.json")
    arguments = parser.parse_args()
    results = []
    print("| | kinds | of each site | states of each site | explorations | s |\n" + "| --- " * 6 + "|")
    for way, states_per_turn, sites_at_once in WAYS:
        r = divide(way, states_per_turn, sites_at_once, states=arguments.states)
        results.append(r)
        print(f"| {r.way} | {sum(r.kinds)} | {r.kinds} | {r.states} | {r.explorations} | {r.seconds:.0f} |", flush=True)
    if arguments.save:
        document = {"states": arguments.states, "results": [asdict(result) for result in results], **run_info()}
        write_result(RESULTS / "turns.json", document)


if __name__ == "__main__":
    main()
