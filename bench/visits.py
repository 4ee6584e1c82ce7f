"""Benchmark of what visits send: applications that read by POST and over WebSockets are mapped, nothing is changed.

Each application is visited once in a browser without a guard, then explored with the guard in its default mode and in
the mode `strict`. What the server holds (database, files) is compared after each. If the exploration changed something,
the application is started again, and the addresses of the map are visited without a guard: the exploration must leave
no change that these plain visits do not make.

    python -m bench.visits [--scratch FOLDER] [--only NAME] [--states 30] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urljoin

from playwright.async_api import async_playwright

from bench import real_sites, visit_apps
from bench.result_files import RESULTS, run_info, write_result
from tests.blobs import MemoryBlobs
from waygraph.core.errors import ContentStopped
from waygraph.core.settings import Settings
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture

APPLICATIONS: dict[str, Callable[[Path], AbstractContextManager[real_sites.Served]]] = {
    "streamlit": visit_apps.streamlit,
    "nicegui": visit_apps.nicegui,
    "gradio": visit_apps.gradio,
    "fossil": real_sites.fossil,
    "dokuwiki": real_sites.dokuwiki,
    "wagtail": real_sites.wagtail,
    "node-red": real_sites.node_red,
    "jupyterlab": real_sites.jupyterlab,
}
_VISIT_SECONDS = 5.0


@dataclass(frozen=True)
class Measured:
    """One application.

    Attributes
    ----------
    name : the application.
    states, strict_states : states of the map in the modes `guard` and `strict`; 0 if it was refused as an error page.
    seconds : duration of the exploration in the mode `guard`.
    sent : kinds of requests and messages that visits sent.
    stopped : requests that were stopped, by method.
    changed : lines of the server's contents that the exploration changed.
    beyond : lines among them that plain visits of the same addresses do not change.
    changes : the first of the changed lines.
    """

    name: str
    states: int
    strict_states: int
    seconds: float
    sent: tuple[str, ...]
    stopped: dict[str, int]
    changed: int
    beyond: int
    changes: tuple[str, ...]


async def visit(served: real_sites.Served, urls: Sequence[str]) -> None:
    """Load pages in a browser without a guard, and stay on each for some seconds."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser().path)
        context = await browser.new_context(storage_state=served.storage_state)
        page = await context.new_page()
        for url in urls:
            await page.goto(url)
            await asyncio.sleep(_VISIT_SECONDS)
        await browser.close()


def explore(served: real_sites.Served, states: int, mode: str) -> SiteCapture | None:
    """Explore an application; return its map, or None if that shows an error page."""
    storage = {"storage_state": str(served.storage_state)} if served.storage_state else {}
    settings = Settings(explore={"max_states": states, "depth": 3, "guard": mode, **storage})
    try:
        return asyncio.run(explore_site(served.start, settings=settings, blobs=MemoryBlobs()))
    except ContentStopped as error:
        print(f"  {mode}: {error.message}")
        return None


def differing(before: str, after: str) -> list[str]:
    """Return the lines that were removed or added."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line[:200] for line in lines if not line.startswith(("---", "+++", "@@"))]


def measure(name: str, scratch: Path, states: int) -> Measured:
    serve = APPLICATIONS[name]
    with serve(scratch) as served:
        asyncio.run(visit(served, [served.start]))
        served.forget()
        visited = served.contents()
        capture = explore(served, states, "guard")
        served.forget()
        changes = differing(visited, served.contents())
        strict = explore(served, states, "strict")
        origin = served.start
    by_visits: list[str] = []
    if changes and capture is not None:
        paths = [
            node.url.partition("/")[2].partition("/")[2].partition("/")[2] for node in capture.graph.nodes.values()
        ]
        with serve(scratch) as served:
            before = served.contents()
            asyncio.run(visit(served, [urljoin(served.start, f"/{path}") for path in dict.fromkeys(paths)]))
            by_visits = differing(before, served.contents())
    edges = capture.graph.edges if capture is not None else ()
    return Measured(
        name=name,
        states=len(capture.graph) if capture is not None else 0,
        strict_states=len(strict.graph) if strict is not None else 0,
        seconds=round(capture.report.seconds, 1) if capture is not None else 0.0,
        sent=tuple(label.replace(_origin(origin), "") for label in capture.report.sent_by_visits) if capture else (),
        stopped=dict(Counter(request.method for edge in edges for request in edge.blocked)),
        changed=len(changes),
        beyond=sum(change not in by_visits for change in changes),
        changes=tuple(changes[:10]),
    )


def _origin(url: str) -> str:
    """Return the part of a URL that names the server, whose port differs from run to run."""
    return "//" + url.split("/")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, help="folder for installed applications; kept")
    parser.add_argument("--only", choices=APPLICATIONS, help="one application")
    parser.add_argument("--states", type=int, default=30, help="states to explore of each")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="waygraph-visits-"))
    scratch.mkdir(parents=True, exist_ok=True)
    rows, absent = [], {}
    for name in [options.only] if options.only else APPLICATIONS:
        try:
            row = measure(name, scratch, options.states)
        except real_sites.NotAvailable as error:
            absent[name] = str(error)
            print(f"{name}: not available: {error}")
            continue
        rows.append(row)
        print(
            f"{name}: {row.states} states in {row.seconds} s (strict: {row.strict_states}), {len(row.sent)} kinds sent "
            f"by visits, stopped {row.stopped}, lines changed {row.changed}, beyond plain visits {row.beyond}"
        )
        for line in (*row.sent[:12], *row.changes):
            print(f"    {line}")
    if options.save:
        document = {**run_info(), "states": options.states, "applications": [asdict(row) for row in rows]}
        write_result(RESULTS / "visits.json", {**document, "absent": absent})


if __name__ == "__main__":
    main()
