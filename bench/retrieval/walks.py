"""Benchmark of whole tasks: a question, `navigate`, the walk in a browser, and whether it ends on the right page.

    python -m bench.retrieval.walks --store FOLDER --sites NAME ... [--described] [--limit N] [--save]

Takes the maps that `bench.retrieval.maps` made, encodes them, starts each site again, and asks the questions of
`questions/` and of `bench.function_pages` whose page the map has, as a state or a lead. For each, a page in a fresh
context loads the start page, `navigate` is asked with it as the current page, and the SDK walks the page to the
chosen state. A walk counts as right if the SDK verified the arrival and the live page is one that the question means:
the page is observed anew and compared with the question's targets, without the map. The browser can reach the site
only. `--described` gives the maps the descriptions of `replies/` (`bench.retrieval.with_model`) first.
`--save` replaces the rows of these sites in bench/results/walks.json, with `--described` walks-described.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser
from scipy.stats import binomtest

from bench import function_pages
from bench.real_sites import Served
from bench.result_files import RESULTS, run_info, write_result
from bench.retrieval.maps import SITES, map_folder, open_map
from bench.retrieval.queries import Target, read_queries, resolve
from bench.retrieval.with_model import described
from bench.site_walks import agents_page, plain
from waygraph.agents.describe.run import publish
from waygraph.core.errors import BrowserFailure
from waygraph.core.schemas import CurrentPage, NavigateRequest
from waygraph.core.settings import BrowserSettings, EncodeSettings, ExploreSettings, Settings
from waygraph.index.graph import Observation
from waygraph.index.store import MapDraft, MapVersion, Store
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import draft_from_version, encode_map
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

RESULT, DESCRIBED_RESULT = RESULTS / "walks.json", RESULTS / "walks-described.json"


@dataclass(frozen=True)
class Task:
    """A question, the states and leads of the map that answer it, and whether an observed page does."""

    ask: str
    source: str
    states: frozenset[str]
    leads: frozenset[str]
    fits: Callable[[Observation], bool]


@dataclass(frozen=True)
class Walked:
    """One task: whether the right state was chosen, how the walk ended, and whether the live page is the right one."""

    source: str
    ask: str
    visited: bool
    chosen_right: bool
    outcome: str
    arrived: bool
    shows_answer: bool
    seconds: float
    confidence: float | None
    url: str
    problem: str

    @property
    def right(self) -> bool:
        """Whether the walk was verified and ended on a page that answers the question."""
        return self.arrived and self.shows_answer


def tasks(name: str, version: MapVersion) -> list[Task]:
    """Return the questions about a site whose page its map has, as a state or a lead."""
    found = []
    ids = list(version.graph.nodes)
    for question in resolve(read_queries(name), version.graph, version.observations):
        targets = [Target.parse(text) for text in question.query.at]
        paths = [target for target in targets if not (target.shows or target.hides)]
        leads = {lead.id for lead in version.leads.values() if any(target.is_at(lead.url) for target in paths)}

        def fits(seen: Observation, targets: Sequence[Target] = targets) -> bool:
            return any(target.fits(seen) for target in targets)

        states = frozenset(ids[i] for i in question.targets)
        found.append(Task(question.query.ask, "questions", states, frozenset(leads), fits))
    for page in function_pages.load(name):

        def is_at(seen: Observation, page: function_pages.FunctionPage = page) -> bool:
            return page.is_at(seen.url)

        states = frozenset(node.id for node in version.graph.nodes.values() if page.is_at(node.url))
        leads = {lead.id for lead in version.leads.values() if page.is_at(lead.url)}
        found.append(Task(page.question, "function pages", states, frozenset(leads), is_at))
    return [task for task in found if task.states or task.leads]


def encoded_map(folder: Path, name: str, encoder: Encoder, *, is_described: bool) -> MapVersion:
    """Return the map of a site with the vectors of an encoder, and its descriptions or none.

    What differs from the published version is published.
    """
    store = Store.open(str(map_folder(name, folder)))
    version = open_map(name, folder)
    if version.manifest.encoder.fingerprint != encoder.fingerprint:
        store.publish(_encoded_draft(version, encoder))
        version = open_map(name, folder)
    publish(store, version, described(name, version).descriptions if is_described else {}, encoder)
    return open_map(name, folder)


def _encoded_draft(version: MapVersion, encoder: Encoder) -> MapDraft:
    found = encode_map(version.graph, version.observations.values(), version.leads.values(), (), encoder)
    return draft_from_version(version, Settings(), found)


async def walk(browser: Browser, source: StoreMap, version: MapVersion, served: Served, task: Task) -> Walked:
    """Ask for the page of a task and walk there from the start page."""
    served.forget()
    site, start = version.manifest.site, version.manifest.start_url
    page = await agents_page(browser, served.storage_state)
    try:
        await page.goto(start)
        began = time.perf_counter()
        request = NavigateRequest(site=site, query=task.ask, current=CurrentPage(url=page.url))
        answer = await asyncio.to_thread(source.navigate, request)
        chosen = answer.node_id or ""
        outcome, arrived, problem, shown = "not chosen", False, answer.reason, page
        if chosen:
            result = await teleport(page, source, site, chosen)
            outcome, arrived, problem, shown = result.outcome, result.arrived, result.problem, result.page
        seconds = time.perf_counter() - began
        view = PageView(
            shown, SnapshotOptions.from_settings(BrowserSettings(), ExploreSettings()), BrowserSettings(), owned=False
        )
        try:
            snapshot = await view.observe()
            seen = Observation("", snapshot.url, snapshot.title, tuple(snapshot.segments))
            shows_answer, url = task.fits(seen), seen.url
        except BrowserFailure as error:
            shows_answer, url, problem = False, shown.url, problem or error.message
        finally:
            view.detach()
    finally:
        await page.context.close()
    return Walked(
        source=task.source,
        ask=task.ask,
        visited=bool(task.states),
        chosen_right=chosen in task.states | task.leads,
        outcome=outcome,
        arrived=arrived,
        shows_answer=shows_answer,
        seconds=round(seconds, 2),
        confidence=answer.confidence,
        url=plain(url, start),
        problem=plain(problem, start) if not arrived else "",
    )


async def walk_site(name: str, folder: Path, version: MapVersion, served: Served, limit: int | None) -> list[Walked]:
    """Walk all tasks of a site. Its URLs have the port at which it was mapped; the browser finds its new one there."""
    ports = [urlsplit(url).port for url in (version.manifest.start_url, served.start)]
    rule = f"MAP 127.0.0.1:{ports[0]} 127.0.0.1:{ports[1]}, MAP * ~NOTFOUND"
    found = []
    with StoreMap(str(map_folder(name, folder))) as source:
        async with launch(BrowserSettings(extra_args=(f"--host-resolver-rules={rule}",))) as browser:
            for task in tasks(name, version)[:limit]:
                done = await walk(browser, source, version, served, task)
                found.append(done)
                print(
                    f"{'right' if done.right else '-':6}{done.outcome:20}{done.ask} -> {done.url} {done.problem}",
                    flush=True,
                )
    return found


def share(holds: Sequence[bool]) -> list[float]:
    """Return a share with its 95% interval (Wilson 1927), which fits also shares near 0 and 1.

    >>> share([True, True, True, False])
    [0.75, 0.3006, 0.9544]
    """
    low, high = binomtest(sum(holds), len(holds)).proportion_ci(method="wilson")
    return [round(float(value), 4) for value in (statistics.fmean(holds), low, high)]


def summary(walked: Sequence[Walked]) -> dict[str, Any]:
    """Return counts, and shares with their 95% intervals."""
    return {
        "tasks": len(walked),
        "right page chosen": share([each.chosen_right for each in walked]),
        "arrival verified": share([each.arrived for each in walked]),
        "right page, verified": share([each.right for each in walked]),
        "right page chosen and not reached": sum(each.chosen_right and not each.right for each in walked),
        "right page though another state was chosen": sum(each.right and not each.chosen_right for each in walked),
        "outcomes": dict(Counter(each.outcome for each in walked).most_common()),
        "median seconds": round(statistics.median(each.seconds for each in walked), 2),
    }


def summaries(walked: Sequence[Walked]) -> dict[str, Any]:
    """Return the summary of all tasks, of each list about visited pages, of leads alone, and by confidence."""
    parts = {
        "all": walked,
        "questions": [each for each in walked if each.source == "questions" and each.visited],
        "function pages": [each for each in walked if each.source == "function pages" and each.visited],
        "leads alone": [each for each in walked if not each.visited],
    }
    for level in sorted({each.confidence for each in walked if each.confidence}, reverse=True):
        parts[f"confidence {level}"] = [each for each in walked if each.confidence == level]
    return {name: summary(part) for name, part in parts.items() if part}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--sites", nargs="+", default=["wagtail", "fossil", "dokuwiki"], choices=sorted(SITES))
    parser.add_argument("--described", action="store_true", help="with the generated descriptions of replies/")
    parser.add_argument("--limit", type=int, help="so many tasks of each site, for a trial")
    parser.add_argument(
        "--save",
        action="store_true",
        help="replace the rows of these sites in bench/results/walks.json, described ones in walks-described.json",
    )
    options = parser.parse_args()

    folder = options.store.resolve()
    encoder = create_encoder(EncodeSettings())
    rows = []
    for name in options.sites:
        version = encoded_map(folder, name, encoder, is_described=options.described)
        with SITES[name].get(folder / "sites") as served:
            before = served.contents()
            walked = asyncio.run(walk_site(name, folder, version, served, options.limit))
            changed = served.contents() != before
        row = {
            "site": name,
            "states": len(version.graph),
            "leads": len(version.leads),
            "site changed": changed if before else None,  # None: the site cannot tell
            **summaries(walked),
            "walks": [asdict(each) for each in walked],
            **run_info(),
        }
        rows.append(row)
        print(json.dumps({key: value for key, value in row.items() if key != "walks"}, indent=1), flush=True)
    file = DESCRIBED_RESULT if options.described else RESULT
    before_rows = json.loads(file.read_text(encoding="utf-8"))["sites"] if file.exists() else []
    rows = [*(row for row in before_rows if row["site"] not in options.sites), *rows]
    total = summaries([Walked(**each) for row in rows for each in row["walks"]])
    print(json.dumps(total, indent=1))
    if options.save:
        write_result(file, {"encoder": encoder.fingerprint, "all sites": total, "sites": rows})


if __name__ == "__main__":
    main()
