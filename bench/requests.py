"""Benchmark of how often servers are asked: requests and bytes per state, with and without stored responses.

Each site is explored twice from one server: first every page requests its static files, then the guard answers
repeated requests (`explore.static_files_bytes`). Counted is what reaches the server, at the egress proxy, by the
purpose that the browser states (`Sec-Fetch-Dest`). Static files that their server forbids to store (`no-store`) are
counted apart. Both maps must have the same states and edges. Beside them stands a bare script, which loads the URL of
each state once in one browser context. The reasons for loads are those of the counters `load/...`.

    python -m bench.requests [--sites gentelella,wagtail,demo-shop] [--states 60] [--scratch FOLDER] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from unittest import mock

import httpx

from bench import real_sites
from bench.result_files import RESULTS, run_info, write_result
from tests.blobs import MemoryBlobs
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.demo_site import DemoSite
from waygraph.index.graph.export import to_json
from waygraph.pipeline.browser.egress.messages import ProxiedRequest
from waygraph.pipeline.browser.egress.proxy import EgressProxy
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.explore.session.network_boundary import network_boundary


@contextmanager
def _demo_shop(_: Path) -> Iterator[real_sites.Served]:
    with DemoSite() as site:
        yield real_sites.Served(site.url, Path(os.devnull))


SITES: dict[str, Callable[[Path], AbstractContextManager[real_sites.Served]]] = {
    "gentelella": real_sites.gentelella,
    "wagtail": real_sites.wagtail,
    "tabler": real_sites.tabler,
    "dokuwiki": real_sites.dokuwiki,
    "demo-shop": _demo_shop,
    "python-docs": real_sites.python_docs,
    "fossil": real_sites.fossil,
    "node-red": real_sites.node_red,
}
TARGET_STATIC, TARGET_DOCUMENTS = 1.3, 1.6
_DOCUMENTS = frozenset({"document", "iframe", "frame"})
_STATIC = frozenset({"script", "style", "font", "image"})


@dataclass(frozen=True)
class Measured:
    """One exploration.

    Attributes
    ----------
    states, edges : size of the map.
    seconds : duration.
    documents : requests for documents.
    static, distinct : requests for static files that may be stored, and their different URLs.
    not_stored : requests for static files with `no-store`.
    other : requests of scripts, and those without a stated purpose.
    megabytes : received from the server, with headers.
    loads : documents that the explorer loaded, by reason.
    """

    states: int
    edges: int
    seconds: float
    documents: int
    static: int
    distinct: int
    not_stored: int
    other: int
    megabytes: float
    loads: Mapping[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:  # noqa: D102
        return self.documents + self.static + self.not_stored + self.other

    @property
    def static_ratio(self) -> float:  # noqa: D102
        return round(self.static / max(1, self.distinct), 2)

    @property
    def documents_per_state(self) -> float:  # noqa: D102
        return round(self.documents / self.states, 2)

    def text(self) -> str:
        """Return one line for people."""
        return (
            f"{self.states} states in {self.seconds} s: {self.static} static requests for {self.distinct} URLs "
            f"({self.static_ratio}x), {self.not_stored} with no-store, {self.documents_per_state} documents per state, "
            f"{self.other} others, {self.megabytes / self.states:.2f} MB per state"
        )

    def reasons(self) -> str:
        """Return the share of each reason for a load, the most frequent first."""
        total = sum(self.loads.values())
        shares = sorted(self.loads.items(), key=lambda pair: -pair[1])
        return f"{total / self.states:.2f} loads per state: " + ", ".join(
            f"{reason} {count} ({count / total:.0%})" for reason, count in shares
        )


@contextmanager
def counted() -> Iterator[tuple[Counter[tuple[str, str]], Counter[str]]]:
    """Count what passes egress proxies: requests by purpose and URL, and bytes received by host."""
    seen: Counter[tuple[str, str]] = Counter()
    blocks = EgressProxy.blocks
    received = Counter[str]()
    count_received = EgressProxy.count_received

    def counting(self: EgressProxy, request: ProxiedRequest, url: str) -> bool:
        seen[request.header(b"sec-fetch-dest").decode("latin-1"), url] += 1
        return blocks(self, request, url)

    def counting_bytes(self: EgressProxy, key: str, count: int) -> None:
        received[key] += count
        count_received(self, key, count)

    with (
        mock.patch.object(EgressProxy, "blocks", counting),
        mock.patch.object(EgressProxy, "count_received", counting_bytes),
    ):
        yield seen, received


async def _visit(urls: Iterable[str], settings: Settings, start: str) -> None:
    async with network_boundary(start, settings) as around, launch(settings.browser, guarded=True) as browser:
        context = await browser.new_context(proxy={"server": around.proxy.url, "bypass": "<-loopback>"})
        page = await context.new_page()
        for url in urls:
            await page.goto(url)
        await context.close()


def measure_bare(served: real_sites.Served, urls: Iterable[str]) -> Mapping[str, float]:
    """Load each URL once in one browser context, without a session, and count what reaches the server."""
    with counted() as (seen, received):
        asyncio.run(_visit(urls, Settings(), served.start))
    return {"requests": seen.total(), "megabytes": round(received.total() / 1e6, 2)}


def measure(served: real_sites.Served, states: int, stored_bytes: int) -> tuple[Measured, SiteCapture]:
    """Explore a site and count what reaches its server."""
    storage = {"storage_state": str(served.storage_state)} if served.storage_state else {}
    explore = {"max_states": states, "depth": 3, "static_files_bytes": stored_bytes, **storage}
    began = time.monotonic()
    with counted() as (seen, received):
        capture = asyncio.run(explore_site(served.start, settings=Settings(explore=explore), blobs=MemoryBlobs()))
    seconds = time.monotonic() - began
    forbidden = _not_storable({url for (kind, url) in seen if kind in _STATIC}, served)
    static = {(kind, url): count for (kind, url), count in seen.items() if kind in _STATIC and url not in forbidden}
    documents = sum(count for (kind, _), count in seen.items() if kind in _DOCUMENTS)
    not_stored = sum(count for (kind, url), count in seen.items() if kind in _STATIC and url in forbidden)
    found = Measured(
        states=len(capture.graph),
        edges=sum(1 for _ in capture.graph.edges),
        seconds=round(seconds, 1),
        documents=documents,
        static=sum(static.values()),
        distinct=len({url for _, url in static}),
        not_stored=not_stored,
        other=seen.total() - documents - not_stored - sum(static.values()),
        megabytes=round(received.total() / 1e6, 2),
        loads={
            name.removeprefix("load/"): count
            for name, count in capture.report.counters.items()
            if name.startswith("load/")
        },
    )
    return found, capture


def _not_storable(urls: set[str], served: real_sites.Served) -> set[str]:
    """Return the URLs whose server forbids to store the response."""
    cookies = json.loads(served.storage_state.read_text())["cookies"] if served.storage_state else []
    header = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)
    with httpx.Client(headers={"Cookie": header} if header else {}, timeout=20) as client:
        return {url for url in urls if "no-store" in client.get(url).headers.get("cache-control", "")}


def _export(capture: SiteCapture) -> Mapping[str, object]:
    return to_json(capture.site, 1, capture.graph, recognition=capture.recognition, leads=capture.leads)


def compare(name: str, states: int, scratch: Path) -> Mapping[str, object]:
    """Explore a site without and with stored files; print and return both measurements."""
    with SITES[name](scratch) as served:
        before, first = measure(served, states, 0)
        print(f"{name}, not stored: {before.text()}", flush=True)
        after, second = measure(served, states, ExploreSettings().static_files_bytes)
        print(f"{name}, stored: {after.text()}\n  {after.reasons()}", flush=True)
        urls = dict.fromkeys(node.url for node in second.graph.nodes.values())
        bare = measure_bare(served, urls)
    ratios = {
        "requests": round(after.requests / bare["requests"], 2),
        "megabytes": round(after.megabytes / bare["megabytes"], 2),
    }
    print(f"{name}, bare script: {bare}; with stored responses {ratios} times that", flush=True)
    is_same = _export(first) == _export(second)
    meets = after.static_ratio <= TARGET_STATIC and after.documents_per_state <= TARGET_DOCUMENTS
    print(f"{name}: the map is {'the same' if is_same else 'ANOTHER'}, targets {'met' if meets else 'MISSED'}")
    return {
        "before": asdict(before),
        "after": asdict(after),
        "bare": bare,
        "ratio_to_bare": ratios,
        "same_map": is_same,
        "meets_targets": meets,
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sites", default="gentelella,wagtail,demo-shop", help=f"comma-separated, out of {', '.join(SITES)}"
    )
    parser.add_argument("--states", type=int, default=60, help="states to explore of each")
    parser.add_argument("--scratch", type=Path, help="folder for installed sites; kept")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="waygraph-requests-"))
    scratch.mkdir(parents=True, exist_ok=True)
    sites = {name: compare(name, options.states, scratch) for name in options.sites.split(",")}
    if options.save:
        targets = {"static_ratio": TARGET_STATIC, "documents_per_state": TARGET_DOCUMENTS}
        write_result(RESULTS / "requests.json", {**run_info(), "targets": targets, "sites": sites})


if __name__ == "__main__":
    main()
