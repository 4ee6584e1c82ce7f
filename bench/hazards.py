"""Benchmark of `explore.hazards`: what is gained by pressing buttons that save or send, and what it changes.

Each application is started anew for each mode and explored, logged in, with the same budget. What the server holds
(database, files) is compared before and after. Then the addresses of the map are visited without a guard in a further
copy: an exploration must leave no change that plain visits do not make.

    python -m bench.hazards [--scratch FOLDER] [--sites fossil,wagtail] [--states 100] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urljoin, urlsplit

from bench import real_sites
from bench.function_pages import load
from bench.result_files import RESULTS, run_info, write_result
from bench.visits import APPLICATIONS, differing, visit
from tests.blobs import MemoryBlobs
from waygraph.core.settings import HazardMode, Settings
from waygraph.core.urls import url_template
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture

RESULT = RESULTS / "hazards.json"
SITES = ("fossil", "wagtail", "dokuwiki", "node-red", "jupyterlab", "streamlit", "nicegui", "gradio")


@dataclass(frozen=True)
class Measured:
    """One application in one mode.

    Attributes
    ----------
    site, mode : the application and the value of `explore.hazards`.
    states, edges : size of the map.
    templates : number of different URL templates among the states.
    function_pages, listed : pages of the list of `bench.function_pages` that were visited, and the length of the list.
    left_alone : elements that were skipped as `hazard` or `form_post`.
    sends : edges of which a request was stopped.
    seconds : duration of the exploration.
    stopped : stopped requests of edges, by method.
    changed : lines of the server's contents that the exploration changed.
    beyond : lines among them that plain visits of the same addresses do not change.
    changes : the first of these.
    """

    site: str
    mode: HazardMode
    states: int
    edges: int
    templates: int
    function_pages: int
    listed: int
    left_alone: dict[str, int]
    sends: int
    seconds: float
    stopped: dict[str, int]
    changed: int
    beyond: int
    changes: tuple[str, ...]


def explore(served: real_sites.Served, states: int, mode: HazardMode) -> SiteCapture:
    """Explore an application."""
    session = {"storage_state": str(served.storage_state)} if served.storage_state else {}
    settings = Settings(explore={"max_states": states, "depth": 3, "hazards": mode, **session})
    return asyncio.run(explore_site(served.start, settings=settings, blobs=MemoryBlobs()))


def measure(site: str, mode: HazardMode, scratch: Path, states: int) -> Measured:
    """Explore one application in one mode, and compare what its server holds."""
    serve = APPLICATIONS[site]
    with serve(scratch) as served:
        asyncio.run(visit(served, [served.start]))
        served.forget()
        before = served.contents()
        capture = explore(served, states, mode)
        served.forget()
        changes = differing(before, served.contents())
    urls = list(dict.fromkeys(node.url for node in capture.graph.nodes.values()))
    beyond = changes
    if changes:
        with serve(scratch) as served:
            before = served.contents()
            paths = (urlsplit(f"http://{url.partition('://')[2]}") for url in urls)
            asyncio.run(visit(served, [urljoin(served.start, parts._replace(scheme="", netloc="").geturl())
                                       for parts in paths]))  # fmt: skip
            by_visits = set(differing(before, served.contents()))
        beyond = [change for change in changes if change not in by_visits]
    pages = load(site)
    left_alone = Counter(skip.reason for skip in capture.report.skips if skip.reason in {"hazard", "form_post"})
    edges = list(capture.graph.edges)
    return Measured(
        site=site,
        mode=mode,
        states=len(capture.graph),
        edges=len(edges),
        templates=len({url_template(url) for url in urls}),
        function_pages=sum(any(page.is_at(url) for url in urls) for page in pages),
        listed=len(pages),
        left_alone=dict(left_alone),
        sends=sum(bool(edge.blocked) for edge in edges),
        seconds=round(capture.report.seconds, 1),
        stopped=dict(Counter(request.method for edge in edges for request in edge.blocked)),
        changed=len(changes),
        beyond=len(beyond),
        changes=tuple(beyond[:10]),
    )


def save(site: str, result: dict[str, Any]) -> None:
    """Replace the result of one application."""
    known = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    write_result(RESULT, {**known, site: result})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, help="folder for installed applications; kept")
    parser.add_argument("--sites", default=",".join(SITES[:5]), help=f"applications, of {', '.join(SITES)}")
    parser.add_argument("--states", type=int, default=100, help="states to explore of each")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="waygraph-hazards-"))
    scratch.mkdir(parents=True, exist_ok=True)
    for site in options.sites.split(","):
        try:
            rows = [measure(site, mode, scratch, options.states) for mode in get_args(HazardMode)]
        except real_sites.NotAvailable as error:
            print(f"{site}: not available: {error}", flush=True)
            continue
        for row in rows:
            print(asdict(row), flush=True)
        if options.save:
            save(site, {**run_info(), "states": options.states, "modes": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
