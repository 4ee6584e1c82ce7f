"""Time of a search in this process and over HTTP: the part `service` of `bench.search`.

Builds a synthetic store (random unit vectors, and says so), asks it distinct questions with no cache anywhere, and
measures percentiles beside those of a no-op endpoint of the same service in the same run.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import httpx
import numpy as np

from waygraph.core.schemas import SearchRequest
from waygraph.core.settings import Settings
from waygraph.index.graph import Action, Edge, InteractionGraph, Node, Observation, node_id
from waygraph.index.store import EncoderInfo, MapDraft, Store
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.query.maps import Maps

SITE = "synthetic.example"
WARM_UP = 20

SERVE = """
import json, sys
from waygraph.serve.runtime.app import run
from waygraph.core.schemas import SearchRequest
from waygraph.core.settings import Settings
run(Settings.model_validate(json.loads(sys.argv[1])), on_ready=lambda url: print(url, flush=True))
"""


@dataclass(frozen=True)
class Row:
    """One measured line of the table."""

    what: str
    clients: int
    calls: int
    p50_ms: float
    p99_ms: float
    calls_per_s: float
    target_p50_ms: float | None = None


def synthetic_map(encoder: Encoder, states: int, rows: int) -> MapDraft:
    """Return a ring of states with random vectors: realistic sizes, meaningless content."""
    random = np.random.default_rng(2)
    urls = [f"http://{SITE}/states/{number}" for number in range(states)]
    nodes = [Node(node_id((), url), url, f"State {i}", (), min(i, 3), addressable=True) for i, url in enumerate(urls)]
    vectors = random.standard_normal((states, rows, encoder.dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    texts = tuple(f"synthetic row {number}" for number in range(rows))
    return MapDraft(
        site=SITE,
        start_url=urls[0],
        graph=InteractionGraph(
            nodes,
            (
                Edge(a.id, b.id, Action(kind="click", role="link", name=b.title), cost_ms=50.0)
                for a, b in itertools.pairwise(nodes)
            ),
        ),
        observations={node.id: Observation(node.id, node.url, node.title, ()) for node in nodes},
        pages={node.id: EncodedPage(page, texts, ((),) * rows) for node, page in zip(nodes, vectors, strict=True)},
        encoder=EncoderInfo(encoder.name, encoder.dim, encoder.fingerprint),
        report={"synthetic": True},
    )


def questions() -> Iterator[str]:
    """Questions of the length people ask, no two alike."""
    things = ("orders", "a customer's address", "refunds", "stock", "gift cards", "reports", "a delivery", "taxes")
    for number in itertools.count():
        yield f"the page where number {number} changes {things[number % len(things)]} of last month"


def measure(what: str, clients: int, calls: int, call: Callable[[int], None], target: float | None = None) -> Row:
    """Run a closed loop: each client asks again as soon as it has its answer; `calls` in all."""
    counter = itertools.count()
    ready = threading.Barrier(clients + 1)

    def client(_: int) -> list[float]:
        ready.wait()
        taken = []
        while (number := next(counter)) < calls:
            before = time.perf_counter()
            call(number)
            taken.append(time.perf_counter() - before)
        return taken

    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client, number) for number in range(clients)]
        ready.wait()
        began = time.perf_counter()
        taken = np.array([seconds for future in running for seconds in future.result()])
        lasted = time.perf_counter() - began
    p50, p99 = np.percentile(taken * 1_000, (50, 99))
    return Row(what, clients, calls, round(p50, 1), round(p99, 1), round(calls / lasted, 1), target)


def in_process(settings: Settings, encoder: Encoder, calls: int) -> list[Row]:
    """Encode + MaxSim + making the answer, without HTTP; and encoding alone."""
    asked = questions()

    def encode(_: int) -> None:
        encoder.encode_query(next(asked))

    def search(_: int) -> None:
        maps.search(SITE, SearchRequest(query=next(asked)))

    with Maps(settings) as maps:
        maps.open()
        measure("warm up", 1, WARM_UP, search)
        return [
            measure("encoding alone", 1, calls, encode),
            measure("search in process", 1, calls, search, 30),
        ]


@contextmanager
def service(settings: Settings) -> Iterator[str]:
    """Start a real service in its own process."""
    document = settings.model_dump(mode="json", include={"store", "serve", "encode"})
    process = subprocess.Popen([sys.executable, "-c", SERVE, json.dumps(document)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)


def over_http(settings: Settings, calls: int) -> list[Row]:
    """Ask the same questions over HTTP, each beside a no-op of the same service."""
    asked = questions()
    lock = threading.Lock()

    with service(settings) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as http:

        def noop(_: int) -> None:
            http.get("/healthz").raise_for_status()

        def search(_: int) -> None:
            with lock:
                question = next(asked)
            http.post(f"/v1/sites/{SITE}/search", json={"query": question, "k": 10}).raise_for_status()

        measure("warm up", 8, 2 * WARM_UP, search)
        measure("warm up", 8, 2 * WARM_UP, noop)
        return [
            measure("no-op over HTTP", 1, calls, noop),
            measure("search over HTTP", 1, calls, search, 40),
            measure("no-op over HTTP", 8, calls, noop),
            measure("search over HTTP", 8, calls, search, 120),
        ]


def measure_all(states: int = 500, rows: int = 32, calls: int = 200) -> list[dict[str, Any]]:
    """Every line of the table."""
    with tempfile.TemporaryDirectory(prefix="waygraph-bench-") as folder:
        settings = Settings(store=folder, serve={"port": 0})
        # As the service does: one thread for one question.
        encoder = create_encoder(settings.encode.model_copy(update={"threads": 1}))
        Store.open(folder, create=True).publish(synthetic_map(encoder, states, rows))
        size = f"{states} states x {rows} vectors x {encoder.dim}"
        measured = in_process(settings, encoder, calls) + over_http(settings, calls)
    return [{"store": size, **asdict(row)} for row in measured]
