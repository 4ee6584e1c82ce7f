"""Benchmark of leads: whether pages that people ask for are in the map, and what leads cost.

Explores sites of others with a budget of states. Of the pages in the lists of `bench.function_pages` it counts those
that were visited and those that are leads, at several numbers of states, and pages that show another thing in the way
of an earlier one (`/tickets/2/edit` after `/tickets/1/edit`). It measures bytes, encoding time and latency of searches
with leads and without, in turns. Whether searches find the pages: `bench.retrieval.leads`.

    python -m bench.leads [--sites fossil,wagtail] [--states 250] [--fill 50] [--captures DIR] [--save]

`--captures` keeps the explorations in a folder and reads them from there in a later run. `--fill` measures the costs of
that many leads a state: further ones are made of the site's own texts, since few sites have so many.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random

from msgspec import structs

from bench.function_pages import FunctionPage, load
from bench.real_sites import NotAvailable
from bench.result_files import RESULTS, run_info, write_result
from bench.site_walks import BROWSER
from bench.sites import SITES, Site
from tests.blobs import MemoryBlobs
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.index.catalog.catalog import Catalog
from waygraph.index.graph import Lead, lead_id
from waygraph.index.store import Store
from waygraph.index.vectors.edge import EdgeIndex
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.identity.entities import NUMBER, Entities, url_contexts
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.jobs.publishing.draft import encode_draft

STATES = (50, 100, 250)
#: Hits of a search.
HITS = 10
#: Turns in which search latencies are measured.
TURNS = 30
CORES = len(os.sched_getaffinity(0))


@dataclass
class Measured:
    """The results of one site.

    Attributes
    ----------
    site, limit
        Name of the site, and limit of states.
    states, leads, targets
        States and leads of the map, and pages that are known and were not visited.
    explore_seconds
        Duration of the exploration.
    visited
        Pages of the list among the first 50, 100 and 250 states.
    known
        Pages of the list that are states or leads of the whole map.
    repeated
        Pages among the states whose URL differs from that of an earlier state in one entity or number alone.
    variants
        States at the URL of an earlier state.
    absent
        Entries of the list whose page is neither.
    cost
        Values without leads, and the share by which leads increase them: bytes of the version, the same with
        screenshots and documents; seconds of encoding (CPU time divided by the number of cores), alone and with the
        exploration; median latency in milliseconds of a search in vectors, and of a whole one, which encodes the query
        and counts its words.
    """

    site: str
    limit: int
    states: int
    leads: int
    targets: int
    explore_seconds: float
    visited: dict[int, int]
    known: int
    repeated: int
    variants: int
    absent: list[str]
    cost: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Exploration:
    """An exploration, its duration, and the screenshots and documents by content hash."""

    capture: SiteCapture
    seconds: float
    blobs: dict[str, bytes]


def explored(site: Site, scratch: Path, states: int, captures: Path | None) -> Exploration:
    """Explore a site, or read its exploration from a folder."""
    kept = captures / f"{site.name}-{states}.pickle" if captures is not None else None
    if kept is not None and kept.exists():
        return pickle.loads(kept.read_bytes())  # type: ignore[no-any-return]  # noqa: S301 - written below
    blobs = MemoryBlobs()
    with site.get(scratch) as served:
        explore = {"depth": 3, "max_states": states, "robots": False, "storage_state": served.storage_state}
        settings = Settings.model_validate({"browser": BROWSER, "explore": explore})
        began = time.monotonic()
        capture = asyncio.run(explore_site(served.start, settings=settings, blobs=blobs))
        result = Exploration(capture, time.monotonic() - began, dict(blobs))
    if kept is not None:
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(pickle.dumps(result))
    return result


def count_pages(name: str, limit: int, pages: Sequence[FunctionPage], run: Exploration) -> Measured:
    """Count the pages of a list in a map."""
    capture = run.capture
    urls = [node.url for node in capture.graph.nodes.values()]
    leads = [lead.url for lead in capture.leads.values()]
    visited = {page.id for page in pages if any(map(page.is_at, urls))}
    known = visited | {page.id for page in pages if any(map(page.is_at, leads))}
    counts = {count: sum(any(map(page.is_at, urls[:count])) for page in pages) for count in STATES}
    return Measured(
        site=name,
        limit=limit,
        states=len(urls),
        leads=len(leads),
        targets=capture.report.counters.get("leads/known", 0),
        explore_seconds=round(run.seconds, 1),
        visited={count: found for count, found in counts.items() if count <= len(urls)} | {len(urls): len(visited)},
        known=len(known),
        repeated=count_repeated(capture),
        variants=len(urls) - len(set(urls)),
        absent=sorted({page.id for page in pages} - known),
    )


def count_repeated(capture: SiteCapture) -> int:
    """Count the pages of a map whose URL differs from that of an earlier state in one entity or number alone."""
    nodes = capture.graph.nodes
    links: dict[str, list[str]] = {}
    for edge in capture.graph.edges:
        links.setdefault(edge.source, []).append(edge.action.target)
    for lead in capture.leads.values():
        links.setdefault(lead.state, []).append(lead.url)
    entities = Entities()
    for state_id, node in nodes.items():
        entities.learn(node.url, filter(None, links.get(state_id, ())))
    shown: set[int] = set()
    repeated = 0
    for url in dict.fromkeys(node.url for node in nodes.values()):
        contexts = url_contexts(url)
        repeated += any(
            context in shown for context, word in contexts if word == NUMBER or entities.is_entity(context, word)
        )
        shown.update(context for context, _ in contexts)
    return repeated


def filled(capture: SiteCapture, count: int) -> dict[str, Lead]:
    """Return the leads of a map, and more up to a number, with names, addresses and contexts of its own texts."""
    leads = dict(capture.leads)
    known, random = list(leads.values()), Random(0)
    texts = [s.text for seen in capture.observations.values() for s in seen.segments if 3 < len(s.text) < 70]
    states = list(capture.graph.nodes)
    while len(leads) < count:
        like, name = random.choice(known), " ".join(random.choice(texts) for _ in range(random.randint(1, 2)))
        url = like.url.partition("?")[0].rpartition("/")[0] + "/" + re.sub(r"\W+", "-", name.lower())[:60]
        path = re.sub(r"\[\d+\](?=/[^/]*$)", f"[{random.randint(1, 60)}]", like.action.xpath)
        lead = replace(
            like,
            id=lead_id(url),
            url=url,
            names=(name,),
            heading=random.choice((random.choice(texts), like.heading)),
            description=random.choice((random.choice(texts), "")),
            state=random.choice(states),
            action=structs.replace(like.action, name=name, target=url, xpath=path),
        )
        leads.setdefault(lead.id, lead)
    return leads


def measure_costs(
    pages: Sequence[FunctionPage], run: Exploration, encoder: Encoder, result: Measured, per_state: int
) -> None:
    """Measure what leads cost, at least `per_state` of them a state, and add it to the result of the site."""
    leads = filled(run.capture, per_state * len(run.capture.graph.nodes))
    variants = {"without": replace(run.capture, leads={}), "with": replace(run.capture, leads=leads)}
    drafts, seconds = {}, {}
    for name, capture in variants.items():
        fresh = create_encoder(EncodeSettings())  # texts that were embedded before are cached
        began = time.process_time()
        drafts[name] = encode_draft(capture, Settings(), fresh)
        seconds[name] = (time.process_time() - began) / CORES
    queries = encoder.encode_queries([page.question for page in pages])
    asks = [page.question for page in pages]
    latencies: dict[str, list[float]] = {name: [] for name in variants}
    whole: dict[str, list[float]] = {name: [] for name in variants}
    sizes: dict[str, tuple[int, int]] = {}
    with ExitStack() as stack:
        opened = {}
        for name, draft in drafts.items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            store = Store.open(str(folder), create=True)
            for content in run.blobs.values():
                store.blobs.put(content)
            store.publish(draft)
            version = sum(file.stat().st_size for file in folder.glob("sites/*/versions/*/*"))
            sizes[name] = version, version + sum(map(len, run.blobs.values()))
            catalog = stack.enter_context(closing(Catalog(store, lambda manifest: EdgeIndex(manifest.encoder.dim))))
            opened[name] = stack.enter_context(catalog.open(draft.site))
        for _ in range(TURNS):
            for name, each in opened.items():
                began = time.perf_counter()
                for query in queries:
                    each.search(query, HITS)
                latencies[name].append(1_000 * (time.perf_counter() - began) / len(queries))
                began = time.perf_counter()
                for ask in asks:
                    each.search(encoder.encode_query(ask), HITS, words=ask)
                whole[name].append(1_000 * (time.perf_counter() - began) / len(asks))
    result.cost = {
        "version_bytes": _share(sizes["without"][0], sizes["with"][0]),
        "stored_bytes": _share(sizes["without"][1], sizes["with"][1]),
        "encode_seconds": _share(seconds["without"], seconds["with"]),
        "index_seconds": _share(run.seconds + seconds["without"], run.seconds + seconds["with"]),
        "vectors_ms": _share(statistics.median(latencies["without"]), statistics.median(latencies["with"])),
        "search_ms": _share(statistics.median(whole["without"]), statistics.median(whole["with"])),
    }


def _share(without: float, with_leads: float) -> tuple[float, float]:
    return round(without, 3), round(with_leads / without - 1, 4)


def table(results: Sequence[Measured]) -> str:
    """Return the results as Markdown tables."""
    lines = [
        "| site | states | leads of targets | visited at 50 / 100 / 250 | in the map or a lead | repeated | variants |",
        "| --- |" + " --- |" * 6,
    ]
    for r in results:
        visited = " / ".join(str(r.visited.get(count, "")) for count in STATES)
        lines.append(
            f"| {r.site} | {r.states} | {r.leads} of {r.targets} | {visited} | {r.known} "
            f"| {r.repeated} | {r.variants} |"
        )
    names = ("version_bytes", "stored_bytes", "encode_seconds", "index_seconds", "vectors_ms", "search_ms")
    lines += [
        "",
        "| site | " + " | ".join(f"{name}, more by" for name in names) + " |",
        "| --- |" + " --- |" * len(names),
    ]
    for r in results:
        lines.append(f"| {r.site} | " + " | ".join(f"{r.cost[n][0]:g}, {r.cost[n][1]:+.1%}" for n in names) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = list(dict.fromkeys(page.site for page in load()))
    parser.add_argument("--sites", default=",".join(names), help="comma-separated; all by default")
    parser.add_argument("--states", type=int, default=max(STATES), help="limit of states of each exploration")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    parser.add_argument("--fill", type=int, default=0, help="leads a state whose costs are measured")
    parser.add_argument("--captures", type=Path, help="folder in which explorations are kept")
    parser.add_argument(
        "--save", action="store_true", help="replace the rows of these sites in bench/results/leads.json"
    )
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    encoder = create_encoder(EncodeSettings())
    sites = {site.name: site for site in SITES}
    results: list[Measured] = []
    for name in arguments.sites.split(","):
        pages = load(name)
        try:
            run = explored(sites[name], arguments.scratch, arguments.states, arguments.captures)
        except NotAvailable as error:
            print(f"{name} could not be installed: {error}")
            continue
        results.append(count_pages(name, arguments.states, pages, run))
        measure_costs(pages, run, encoder, results[-1], arguments.fill)
        print(f"{json.dumps(asdict(results[-1]))}", flush=True)
    print(table(results))
    if arguments.save:
        path = RESULTS / "leads.json"
        rows = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else []
        done = {(result.site, result.limit) for result in results}
        rows = [row for row in rows if (row["site"], row.get("limit")) not in done]
        rows += [{**asdict(result), **run_info()} for result in results]
        write_result(path, {"results": rows})


if __name__ == "__main__":
    main()
