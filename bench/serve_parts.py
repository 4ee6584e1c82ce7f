"""Measurements of `bench.serve`: one function per group of rows."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.serve_load import Ask, Connection, Reply, closed_loop, open_loop, percentiles_ms
from bench.serve_process import Service
from bench.serve_store import draft, questions, site_key
from waygraph.core.schemas import SearchRequest
from waygraph.core.settings import Settings
from waygraph.index.store import Store, tables
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.serve.query.async_encoder import CachedQueryEncoder
from waygraph.serve.query.batching_encoder import BatchingQueryEncoder
from waygraph.serve.query.cached_queries import CachedQueries
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.worker_threads import WorkerThreads
from waygraph.serve.telemetry.metrics import Metrics

CALLS = 300
CLIENTS = 16


@dataclass(frozen=True)
class Row:
    """One row of the table; without a target it is for comparison."""

    what: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.target is None:
            return None
        return bool(self.value >= self.target if self.at_least else self.value <= self.target)


@dataclass(frozen=True)
class Bench:
    """Parameters of every part."""

    store: Store
    encoder: Encoder
    sites: int
    states: int
    seconds: float

    def searches(self, seed: int, *, k: int = 10) -> Iterator[Ask]:
        """Distinct queries (never cached) to random sites."""
        rng = random.Random(seed)
        for question in questions(seed):
            yield Ask(f"/v1/sites/{site_key(rng.randrange(self.sites))}/search", {"query": question, "k": k})


def latency(bench: Bench, service: Service) -> list[Row]:
    """Latency of one client, for each kind of call and for a no-op."""
    opened = bench.store.read(site_key(0))
    nodes = list(opened.graph.nodes.values())
    rng = random.Random(5)
    at = f"/v1/sites/{site_key(0)}"
    walkable = [node.id for node in nodes if node.addressable]

    def paths() -> Iterator[Ask]:
        while True:
            yield Ask(f"{at}/path", {"from": rng.choice(nodes).id, "to": rng.choice(walkable)})

    def snapshots() -> Iterator[Ask]:
        while True:
            node = rng.choice(nodes)
            seen = rng.sample(node.structure, len(node.structure) - 5)  # similar to the recorded structure
            yield Ask(f"{at}/locate", {"url": node.url, "structure": seen})

    def one_site() -> Iterator[Ask]:
        for question in questions(1):
            yield Ask(f"{at}/search", {"query": question, "k": 10})

    kinds = {
        "no-op": (itertools.repeat(Ask("/healthz")), None),
        "search": (one_site(), 35.0),
        "path": (paths(), 8.0),
        "locate": (snapshots(), 8.0),
        "cached search": (itertools.repeat(Ask(f"{at}/search", {"query": "the same again", "k": 10})), 8.0),
    }
    rows = []
    for name, (asks, target) in kinds.items():
        ask_all(service, asks, clients=1, calls=30)
        before, cpu = service.measured(), service.cpu_seconds()
        replies = ask_all(service, asks, clients=1, calls=CALLS)
        spent = sum(service.cpu_seconds(cpu).values()) / CALLS * 1_000
        p50, p99 = percentiles_ms(good(replies))
        assert len(good(replies)) == CALLS, replies[0]
        note = f"p99 {p99} ms, {spent:.1f} ms of CPU in the service"
        if name == "search":
            after = service.measured()
            times, count = (
                after[f'waygraph_stage_seconds_{kind}{{stage="encode"}}']
                - before.get(f'waygraph_stage_seconds_{kind}{{stage="encode"}}', 0)
                for kind in ("sum", "count")
            )
            note += f"; of which encoding the question {times / count * 1_000:.1f} ms (mean)"
        rows.append(Row(f"{name}, 1 client, p50", p50, "ms", target, note=note))
    return rows


def load(bench: Bench, service: Service) -> list[Row]:
    """Throughput with 16 clients, compared with the same work in a process without HTTP."""
    open_all(bench, service)
    ask_all(service, bench.searches(10), clients=CLIENTS, seconds=3)
    cpu = service.cpu_seconds()
    replies = ask_all(service, bench.searches(11), clients=CLIENTS, seconds=bench.seconds)
    spent = service.cpu_seconds(cpu)
    p50, p99 = percentiles_ms(good(replies))
    rate = len(good(replies)) / bench.seconds
    alone = bare_rate(bench, askers=1)
    together = bare_rate(bench, askers=CLIENTS)
    by_kind = ", ".join(
        f"{kind} {used / len(replies) * 1_000:.1f}"
        for kind, used in sorted(spent.items(), key=lambda pair: -pair[1])[:3]
    )
    return [
        Row(f"search, {CLIENTS} clients, p99", p99, "ms", 400, note=f"p50 {p50} ms, {bench.seconds:g} s"),
        Row(f"search, {CLIENTS} clients, errors", len(replies) - len(good(replies)), "", 0),
        Row("throughput", round(rate, 1), "1/s", note=f"CPU ms per request: {by_kind}"),
        Row("bare search in process, one by one", round(alone, 1), "1/s"),
        Row(f"bare search in process, {CLIENTS} at once", round(together, 1), "1/s"),
        Row("throughput / bare, one by one", round(rate / alone, 2), "", 0.6, at_least=True),
        Row(f"throughput / bare, {CLIENTS} at once", round(rate / together, 2), "", 0.6, at_least=True),
    ]


def bare_rate(bench: Bench, *, askers: int, calls: int = 400) -> float:
    """Measure searches per second in this process: the service's own parts, without HTTP and without Ray."""
    # Few sites: opening all of them again is not part of the measurement.
    few = Bench(bench.store, bench.encoder, min(8, bench.sites), bench.states, bench.seconds)
    settings = Settings(store=bench.store.location)
    metrics = Metrics()

    async def ask(maps: Maps) -> float:
        encoder = BatchingQueryEncoder(maps.encoder, max_waiting=64, metrics=metrics)
        threads = WorkerThreads(64, metrics)
        queries = CachedQueries(maps, CachedQueryEncoder(encoder, 0, metrics), threads, metrics, max_bytes=0)
        asks = few.searches(21 + askers)

        async def asker(number: int) -> None:
            for _ in range(number):
                each = next(asks)
                assert each.body is not None
                await queries.search(each.path.split("/")[3], SearchRequest.model_validate(each.body))

        for site in range(few.sites):
            await queries.search(site_key(site), SearchRequest(query="warm up", k=1))
        began = time.perf_counter()
        await asyncio.gather(*(asker(calls // askers) for _ in range(askers)))
        lasted = time.perf_counter() - began
        encoder.close()
        threads.close()
        return calls // askers * askers / lasted

    with Maps(settings) as maps:
        maps.open()
        return asyncio.run(ask(maps))


def overload(bench: Bench, service: Service) -> list[Row]:
    """Open-loop load at three times the measured throughput."""
    open_all(bench, service)
    replies = ask_all(service, bench.searches(30), clients=CLIENTS, seconds=5)
    usual = len(good(replies)) / 5

    async def run() -> tuple[list[Reply], float, float]:
        longest = 0.0
        watching = True

        async def watch() -> None:
            nonlocal longest
            connection = Connection(service.url)
            while watching:
                reply = await connection.send(Ask("/metrics"), keep=True)
                longest = max(longest, _waiting(reply.content))
                await asyncio.sleep(0.5)
            connection.close()

        watcher = asyncio.create_task(watch())
        flood = await open_loop(service.url, bench.searches(31), rate=3 * usual, seconds=min(15.0, bench.seconds))
        ended = max(reply.sent for reply in flood)  # the last request is sent; queued requests are still to be answered
        watching = False
        connection, asks = Connection(service.url), bench.searches(32)
        while not ((reply := await connection.send(next(asks))).status == 200 and reply.took < 0.4):
            assert time.perf_counter() - ended < 60, "the service does not recover"
        recovered = reply.sent + reply.took - ended
        connection.close()
        await watcher
        return flood, longest, recovered

    flood, longest, recovered = asyncio.run(run())
    refused = [reply for reply in flood if reply.status != 200]
    dirty = [reply for reply in refused if not reply.clean]
    most = Settings().serve.max_requests
    took = np.percentile([reply.took for reply in flood], 99)
    note = f"{3 * usual:.0f} requests a second, {len(refused)} of {len(flood)} refused, {len(good(flood))} answered"
    return [
        Row("3x overload: requests waiting, at most", longest, "", most, note=note),
        Row("3x overload: answers that are neither 200 nor a clean 429 or 503", len(dirty), "", 0, note=_kinds(dirty)),
        Row("3x overload: p99 of all answers", round(float(took) * 1_000, 1), "ms"),
        Row("3x overload: recovered after", round(max(0.0, recovered), 2), "s", 2),
    ]


def publish(bench: Bench, service: Service) -> list[Row]:
    """Publish a new version of one site under load on that site and others."""
    site = site_key(1)
    new = draft(1, bench.states, bench.encoder, seed=1)
    before = bench.store.head(site)
    published: dict[str, float] = {}

    async def publishing() -> None:
        await asyncio.sleep(2)
        published["version"] = await asyncio.to_thread(bench.store.publish, new)
        published["at"] = time.perf_counter()

    def asks() -> Iterator[Ask]:
        for number, ask in enumerate(bench.searches(40)):
            yield Ask(f"/v1/sites/{site}/search", ask.body) if number % 2 else ask

    ask_all(service, iter([Ask(f"/v1/sites/{site}/search", {"query": "open it"})]), clients=1, calls=1)
    replies = asyncio.run(closed_loop(service.url, asks(), clients=8, seconds=8, keep=True, during=publishing))
    mine = [reply for reply in replies if site in reply.ask.path and reply.status == 200]
    newer = [r.sent + r.took for r in mine if f'"version":{published["version"]:.0f}'.encode() in r.content]
    older = [
        r for r in mine if r.sent > min(newer, default=float("inf")) and f'"version":{before}'.encode() in r.content
    ]
    after = min(newer, default=float("nan")) - published["at"]
    return [
        Row("version published during load: failed requests", len(replies) - len(good(replies)), "", 0,
            note=f"{len(replies)} requests of 8 clients"),
        Row("version published during load: new answers after", round(max(0.0, after), 2), "s", 5),
        Row("version published during load: old answers after the first new one", len(older), "", 0),
    ]  # fmt: skip


def kill(bench: Bench, service: Service) -> list[Row]:
    """Kill the replica (SIGKILL) under load of 8 clients."""
    killed: dict[str, float] = {}

    async def killing() -> None:
        await asyncio.sleep(2)
        for replica in service.replicas():
            replica.kill()
        killed["at"] = time.perf_counter()
        await asyncio.sleep(12)

    replies = asyncio.run(closed_loop(service.url, bench.searches(50), clients=8, seconds=3, during=killing))
    failed = [reply for reply in replies if reply.status != 200]
    in_flight = [reply for reply in failed if reply.sent < killed["at"]]
    later = [reply for reply in failed if reply.sent >= killed["at"]]
    back = [reply.sent + reply.took for reply in good(replies) if reply.sent > killed["at"]]
    return [
        Row("replica killed: requests in flight that failed", len(in_flight), "", note="8 clients"),
        Row("replica killed: later requests that failed", len(later), "", 0, note=_kinds(later)),
        Row("replica killed: answers again after", round(min(back, default=np.nan) - killed["at"], 2), "s", 10),
    ]


def memory(bench: Bench, service: Service) -> list[Row]:
    """Growth of memory when every site is opened, compared with the size of the opened maps."""
    first = site_key(0)
    ask_all(
        service, iter([Ask(f"/v1/sites/{first}/search", {"query": str(n)}) for n in range(40)]), clients=4, calls=40
    )
    before = service.memory()
    began = time.perf_counter()
    open_all(bench, service)
    lasted = time.perf_counter() - began
    after = service.memory()
    held = content_bytes(bench.store, first) * (bench.sites - 1)
    own, mapped = (after[kind] - before[kind] for kind in ("anon", "file"))
    service_says = service.measured()["waygraph_open_bytes"]
    note = f"{held >> 20} MiB of tables; reported by the service: {service_says / 2**20:.0f} MiB"
    return [
        Row("memory of the empty service", before["anon"] >> 20, "MiB", note=f"{before['file'] >> 20} MiB mapped"),
        Row(f"growth with {bench.sites} sites open", own >> 20, "MiB", note=f"opened in {lasted:.0f} s"),
        Row("growth / size of what is open", round(own / held, 2), "", 1.5, note=note),
        Row("the same with the mapped files of Qdrant Edge", round((own + mapped) / held, 2), "", note="page cache"),
    ]  # fmt: skip


def open_all(bench: Bench, service: Service) -> None:
    """Open and use every site, so that later requests find all maps open."""
    asks = []
    for site in map(site_key, range(bench.sites)):
        start = bench.store.manifest(site).start_node_id
        asks += [
            Ask(f"/v1/sites/{site}/search", {"query": "open it"}),
            Ask(f"/v1/sites/{site}/path", {"to": start}),
            Ask(f"/v1/sites/{site}/locate", {"url": "http://nowhere.example/"}),
        ]
    replies = ask_all(service, iter(asks), clients=2, calls=len(asks))
    assert len(good(replies)) == len(asks), [reply for reply in replies if reply.status != 200][:1]


def content_bytes(store: Store, site: str) -> int:
    """Return the uncompressed size of a version as Arrow tables: each value once, without indexes."""
    version = store.read(site)
    nodes = tables.nodes_table(version.graph, version.observations).nbytes
    return int(
        nodes + tables.edges_table(version.graph).nbytes + sum(b.nbytes for b in tables.vector_batches(version.pages))
    )


def soak(bench: Bench, service: Service, minutes: float, rate: float = float("inf")) -> list[Row]:
    """Load for a long time: searches, paths, and versions published now and then; memory over time."""
    samples: list[tuple[float, float]] = []
    open_all(bench, service)

    async def sampling() -> None:
        began = time.perf_counter()
        number = 0
        while (passed := time.perf_counter() - began) < minutes * 60:
            samples.append((passed, service.memory()["anon"] / 2**20))
            number += 1
            if number % 6 == 0:
                new = await asyncio.to_thread(draft, number % 8, bench.states, bench.encoder, seed=number)
                await asyncio.to_thread(bench.store.publish, new)
            await asyncio.sleep(min(5.0, minutes * 60 / 20))

    replies = asyncio.run(
        closed_loop(service.url, bench.searches(60), clients=4, seconds=0, during=sampling, rate=rate)
    )
    third = max(1, len(samples) // 3)
    early = float(np.median([held for _, held in samples[third : 2 * third]]))
    late = float(np.median([held for _, held in samples[-third:]]))
    twelve = [f"{np.median(part):.0f}" for part in np.array_split([held for _, held in samples], 12) if len(part)]
    note = (
        f"{minutes:g} min, {len(replies)} searches; MiB: second third {early:.0f}, last {late:.0f}, "
        f"each twelfth {' '.join(twelve)}"
    )
    return [
        Row("soak: memory, last third / second third", round(late / early, 3), "", 1.03, note=note),
        Row("soak: failed requests", len(replies) - len(good(replies)), "", 0),
    ]


def ask_all(service: Service, asks: Iterator[Ask], **how: Any) -> list[Reply]:
    """Run a closed loop from a caller that is not on an event loop."""
    return asyncio.run(closed_loop(service.url, iter(asks), **how))


def good(replies: list[Reply]) -> list[Reply]:
    return [reply for reply in replies if reply.status == 200]


def _kinds(replies: list[Reply]) -> str:
    """Return a short text of the error."""
    found = sorted({f"{reply.status} {reply.content[:60]!r}" if reply.status else "broken" for reply in replies})
    return "; ".join(found)[:200]


def _waiting(page: bytes) -> float:
    lines = page.decode().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("waygraph_waiting_for_"))
