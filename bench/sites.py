"""Benchmark of exploring and teleporting on sites that this project did not write.

Installs them from package registries, serves them on loopback, explores each, then walks an agent's own unguarded
page through 30 random teleports over the published map:

    python -m bench.sites [--only NAME] [--scratch DIR] [--save]

`--save` writes bench/sites.md, bench/results/sites.json and pictures. The browsers can reach only this
machine.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import logging
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
from PIL import Image

from bench.real_sites import (
    NotAvailable,
    Served,
    dokuwiki,
    fetch,
    fossil,
    gentelella,
    jupyterlab,
    node_red,
    python_docs,
    tabler,
    wagtail,
)
from bench.result_files import run_info, write_result
from bench.site_walks import BROWSER, Teleports, plain, walks
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.core.urls import normalize_url, site_key
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.jobs.publishing.draft import encode_draft
from waygraph.sdk.local import StoreMap

HERE = Path(__file__).parent
#: From this heading on, bench/sites.md is written by hand and kept.
NOTES = "## Findings by hand\n"


@dataclass(frozen=True)
class Site:
    """One site, the limits of its exploration, and how it is installed."""

    name: str
    what: str
    get: Callable[[Path], AbstractContextManager[Served]]
    depth: int
    max_states: int
    robots: bool = True
    """Whether its robots.txt is honoured; not where it disallows everything although the copy is ours."""


SITES = (
    Site("gentelella", "npm: an admin dashboard", gentelella, 3, 110),
    Site("python-docs", "Debian: documentation", python_docs, 2, 100),
    Site("wagtail", "PyPI: a content management system, logged in", wagtail, 3, 120),
    Site("tabler", "npm: a template of dashboards", tabler, 3, 40, robots=False),
    Site("node-red", "npm: an editor of flows, a single page", node_red, 3, 80),
    Site("fossil", "Debian: version control with a web interface, logged in", fossil, 3, 80),
    Site("dokuwiki", "Debian: a wiki of text files, logged in", dokuwiki, 3, 80),
    Site("jupyterlab", "PyPI: a workbench for notebooks, a single page, logged in", jupyterlab, 3, 60),
)


@dataclass
class Measured:
    """Results of one site."""

    name: str
    start: str
    depth: int
    max_states: int
    states: int = 0
    addressable: int = 0
    edges: int = 0
    inherited: int = 0
    seconds: float = 0.0
    stopped_by: str = ""
    depths: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)
    traps: dict[str, int] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    changed: bool = False
    missed: dict[str, Any] = field(default_factory=dict)
    teleports: Teleports = field(default_factory=Teleports)
    pictures: list[tuple[str, str]] = field(default_factory=list)

    def part(self, area: str) -> dict[str, int]:
        """Return the counters of one area, largest first."""
        found = {name.removeprefix(area): n for name, n in self.counters.items() if name.startswith(area)}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


async def measure(site: Site, served: Served, encoder: Encoder, scratch: Path, pictures: Path) -> Measured:
    """Explore, publish, teleport, compare."""
    settings = Settings(
        browser=BROWSER,
        explore={
            "depth": site.depth,
            "max_states": site.max_states,
            "storage_state": served.storage_state,
            "robots": site.robots,
        },
    )
    maps = scratch / "maps" / site.name
    shutil.rmtree(maps, ignore_errors=True)
    store = Store.open(str(maps), create=True)
    before, asked = served.contents(), served.requests()
    capture = await explore_site(served.start, settings=settings, blobs=store.blobs)
    result = _summed_up(site, served.start, capture)
    result.requests = dict(served.requests() - asked)
    result.changed = served.contents() != before
    print(f"{site.name}: {len(capture.graph)} states in {capture.report.seconds:.0f} s", flush=True)
    await asyncio.to_thread(_publish, store, capture, encoder, settings)
    with StoreMap(str(maps)) as source:
        result.teleports = await walks(capture, source, served)
    result.missed = await asyncio.to_thread(missed, site, served, capture, settings)
    result.pictures = _pictures(site, capture, store, pictures)
    return result


def _summed_up(site: Site, start: str, capture: SiteCapture) -> Measured:
    graph, report = capture.graph, capture.report
    walked = [edge for edge in graph.edges if not edge.inherited]
    return Measured(
        name=site.name,
        start=urlsplit(start).path,
        depth=site.depth,
        max_states=site.max_states,
        states=len(graph),
        addressable=sum(node.addressable for node in graph.nodes.values()),
        edges=len(walked),
        inherited=sum(1 for _ in graph.edges) - len(walked),
        seconds=report.seconds,
        stopped_by=report.stopped_by,
        depths=[asdict(row) for row in report.depths],
        counters=dict(report.counters),
        failures=dict(Counter(_kind(failure.reason, start) for failure in report.failures).most_common()),
        blocked=dict(
            Counter(f"{b.method} {_kind(b.url, start)} ({b.kind})" for e in walked for b in e.blocked).most_common()
        ),
        traps=dict(Counter(skip.detail for skip in report.skips if skip.reason == "trap").most_common()),
    )


def _kind(text: str, start: str) -> str:
    """Return the start of a message without host and numbers, by which messages are counted."""
    return re.sub(r"\d+", "#", " ".join(plain(text, start).split()))[:110]


def _publish(store: Store, capture: SiteCapture, encoder: Encoder, settings: Settings) -> None:
    store.publish(encode_draft(capture, settings, encoder))


# ---- what was missed -------------------------------------------------------------------------------------------------


class _Links(HTMLParser):
    """Link targets as they are written into a document."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (href := dict(attrs).get("href")):
            self.found.append(href)


def linked(served: Served, depth: int, settings: Settings, limit: int = 300) -> set[str]:
    """Return the pages that a plain HTTP crawl finds by following links in the HTML to `depth`."""
    policy, cookies = settings.explore.url_policy, ""
    if served.storage_state is not None:
        state = json.loads(served.storage_state.read_text())
        cookies = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in state["cookies"])
    level, found = {normalize_url(served.start, policy)}, set[str]()
    for _ in range(depth + 1):
        further = set[str]()
        for url in sorted(level):
            if len(found) >= limit:
                return found
            try:
                final, html = fetch(url, cookies)
            except httpx.HTTPError:
                continue
            if not html:
                continue
            found.add(normalize_url(final, policy))
            parser = _Links()
            parser.feed(html)
            further.update(normalize_url(urljoin(final, href), policy) for href in parser.found if _is_link(href))
        level = {url for url in further if site_key(url) == site_key(served.start)} - found
    return found


def _is_link(href: str) -> bool:
    return not href.startswith(("#", "mailto:", "tel:", "javascript:", "data:"))


def missed(site: Site, served: Served, capture: SiteCapture, settings: Settings) -> dict[str, Any]:
    """Return known pages without a state, with the reasons given by the report."""
    policy = settings.explore.url_policy
    seen = {node.url for node in capture.graph.nodes.values()}
    known = {normalize_url(url, policy) for url in served.pages} or linked(served, site.depth, settings)
    skipped = {
        normalize_url(skip.target, policy): skip.reason
        for skip in capture.report.skips
        if skip.target.startswith("http") and "#" not in skip.target
    }
    targets = {normalize_url(e.action.target, policy) for e in capture.graph.edges if e.action.target}
    why: dict[str, list[str]] = {}
    for url in sorted(known - seen):
        if url in skipped:
            reason = f"skipped: {skipped[url]}"
        elif url in targets:
            reason = "redirects elsewhere"
        elif capture.report.stopped_by:
            reason = f"not reached before {capture.report.stopped_by}"
        else:
            reason = "no link shown within the depth"
        why.setdefault(reason, []).append(plain(url, served.start))
    return {
        "list": "all pages in the folder" if served.pages else f"links of a plain crawl to depth {site.depth}",
        "known": len(known),
        "reached": len(known & seen),
        "only_ours": len(seen - known),
        "why": {reason: len(urls) for reason, urls in why.items()},
        "examples": {reason: urls[:6] for reason, urls in why.items()},
    }


# ---- report ---------------------------------------------------------------------------------------------------------


def _pictures(site: Site, capture: SiteCapture, store: Store, where: Path, most: int = 6) -> list[tuple[str, str]]:
    """Save screenshots of the start and of states that are not addressable, largest differences first."""
    graph = capture.graph
    start = next(iter(graph.nodes.values()))
    chosen, kinds = [(start, "start")], set[tuple[str, str]]()
    edges = [e for e in graph.edges if not e.inherited and not graph.nodes[e.target].addressable]
    edges.sort(key=lambda e: -len(set(graph.nodes[e.source].structure) ^ set(graph.nodes[e.target].structure)))
    for edge in edges:
        kind = (graph.nodes[edge.target].url, edge.action.name)
        if kind[0] not in {url for url, _ in kinds} and kind[1] not in {name for _, name in kinds}:
            kinds.add(kind)
            chosen.append(
                (graph.nodes[edge.target], f"{edge.action} at {plain(graph.nodes[edge.source].url, start.url)}")
            )
    where.mkdir(parents=True, exist_ok=True)
    taken = []
    for number, (node, how) in enumerate(chosen[:most]):
        image = Image.open(io.BytesIO(store.blobs.get(capture.observations[node.id].screenshot)))
        name = f"{site.name}-{number}.jpg"
        image.resize((800, 800 * image.height // image.width)).save(where / name, quality=70, optimize=True)
        taken.append((name, how))
    return taken


def table(results: list[Measured]) -> str:
    rows = [
        "| site | states (addressable) | edges (inherited) | s | per s | failed | arrived (by evidence) | alike |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows += [
        f"| {r.name} | {r.states} ({r.addressable}) | {r.edges} ({r.inherited}) | {r.seconds:.0f}"
        f" | {r.states / r.seconds:.2f} | {r.counters.get('explore/failed', 0)}"
        f" | {r.teleports.arrived} of {r.teleports.walked} ({r.teleports.by_evidence})"
        f" | {r.teleports.alike} of {r.teleports.arrived} |"
        for r in results
    ]
    return "\n".join(rows)


def describe(r: Measured) -> str:
    """Describe the results of one site in Markdown."""

    def counted(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} {n}" for name, n in counts.items()) or "none"

    t, c = r.teleports, r.counters
    lines = [
        f"From `{r.start}`, depth {r.depth}, at most {r.max_states} states"
        + (f"; ended by `{r.stopped_by}`." if r.stopped_by else "; all of it was explored."),
        "",
        "- Depths: "
        + "; ".join(
            f"{row['depth']}: {row['states']} states, {row['activations']} actions, {row['seconds']:.0f} s"
            for row in r.depths
        )
        + f". Actions saved by differencing: {c.get('diff/saved', 0)}.",
        f"- Skipped: {counted(r.part('skip/'))}.",
        f"- Merged: {counted(r.part('merge/'))}. Groups that were traps: {counted(r.traps)}.",
        (
            f"- Failed: {counted(r.failures)}. Second tries: {c.get('explore/retries', 0)};"
            f" snapshots of pages that had not settled: {c.get('settle/capped', 0)};"
            f" without a screenshot: {c.get('capture/failed', 0)}."
        ),
        (
            f"- Stopped by the guard: {counted(r.blocked)}."
            f" The server saw: {counted(r.requests) if r.requests else 'it keeps no log'};"
            f" its contents have {'CHANGED' if r.changed else 'not changed'}."
        ),
        (
            f"- Reverts: {counted(r.part('undo/'))}; {c.get('reach/replays', 0)} routes replayed;"
            f" contexts renewed {c.get('session/renewals', 0)} times,"
            f" storage restored {c.get('session/resets', 0)} times."
        ),
        (
            f"- Teleports: {t.arrived} of {t.walked} arrived, {t.by_evidence} of them by evidence"
            f" ({t.not_addressable} to states without an address, {t.without_goto} without goto;"
            f" median {t.median_ms:.0f} ms), {t.alike} look like the recorded picture."
        ),
        *(f"  - {problem}" for problem in t.problems),
        (
            f"- Beside {r.missed['list']}: {r.missed['reached']} of {r.missed['known']} are states"
            f" ({r.missed['only_ours']} more URLs are known to the map alone)."
        ),
        *(
            f"  - {reason}: {n}, such as {', '.join(f'`{url}`' for url in r.missed['examples'][reason])}"
            for reason, n in r.missed["why"].items()
        ),
        "",
    ]
    for name, how in r.pictures:
        lines += [f"![{how}](results/sites/{name})", f"*{how}*", ""]
    return "\n".join(lines)


def bench(only: str, scratch: Path, pictures: Path) -> tuple[list[Measured], dict[str, str]]:
    encoder = create_encoder(EncodeSettings())
    results, absent = [], {}
    for site in SITES:
        if only and site.name != only:
            continue
        try:
            with site.get(scratch) as served:
                results.append(asyncio.run(measure(site, served, encoder, scratch, pictures)))
        except NotAvailable as error:
            absent[site.name] = str(error)
            print(f"{site.name} could not be installed: {error}", flush=True)
            continue
        print(f"\n## {site.name} ({site.what})\n\n{describe(results[-1])}", flush=True)
    return results, absent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", choices=[site.name for site in SITES])
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    parser.add_argument("--save", action="store_true", help="write bench/sites.md and bench/results/")
    parser.add_argument("--log", type=Path, help="write what the explorer logs to this file")
    options = parser.parse_args()
    if options.log:
        logging.basicConfig(
            filename=options.log, filemode="w", level=logging.INFO, format="%(relativeCreated)d %(message)s"
        )
    options.scratch.mkdir(parents=True, exist_ok=True)
    pictures = HERE / "results" / "sites" if options.save else options.scratch / "pictures"
    results, absent = bench(options.only, options.scratch, pictures)
    print(table(results))
    if options.save:
        save(results, absent)


def _measured(row: dict[str, Any]) -> Measured:
    return Measured(
        **{**row, "teleports": Teleports(**row["teleports"]), "pictures": [tuple(p) for p in row["pictures"]]}
    )


def save(results: list[Measured], absent: dict[str, str]) -> None:
    about = {
        **run_info(),
        "browser": find_browser().path.name,
    }
    what = {site.name: site.what for site in SITES}
    path = HERE / "results" / "sites.json"
    before = json.loads(path.read_text(encoding="utf-8"))["sites"] if path.exists() else []
    known = {row["name"]: _measured(row) for row in before} | {result.name: result for result in results}
    results = [known[site.name] for site in SITES if site.name in known]
    text = [
        "# Sites that this project did not write",
        "",
        "Written by `python -m bench.sites --save`: "
        + ", ".join(f"{name} {value}" for name, value in about.items())
        + ".",
        "",
        table(results),
        "",
        *(f"Could not be installed: {name} ({why})\n" for name, why in absent.items()),
        *(f"## {r.name}\n\n{what[r.name]}. {describe(r)}" for r in results),
    ]
    page = HERE / "sites.md"
    _, _, notes = page.read_text(encoding="utf-8").partition(NOTES) if page.exists() else ("", "", "")
    page.write_text("\n".join([*text, NOTES]) + notes, encoding="utf-8")
    document = about | {"sites": [asdict(r) for r in results], "absent": absent}
    write_result(path, document)


if __name__ == "__main__":
    main()
