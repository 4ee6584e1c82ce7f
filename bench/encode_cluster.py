"""Benchmark of the jina-v4 encoder in its actor and in the service, on the machine's GPU.

The weights are random and have the true sizes (`bench.jina_checkpoint`).

    python -m bench.encode_cluster [--part NAME ...] [--output FILE] [--seconds N] [--tiny]

    actor     the encoder pool with one actor on the GPU, fed by four processes that make screenshots and store them:
              images per second, beside the same encoder called directly, and the share of time in which no kernel ran
    service   questions encoded on the GPU by a deployment of the service: p50 and p99 of whole searches with one and
              with 16 clients, and of the encoding alone

The share of time without a kernel comes from NVML, which reports for each sample the share in which one ran.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.encode import drawn_page
from bench.jina_checkpoint import write_checkpoint
from bench.result_files import quantiles, run_info
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.index.graph import Observation
from waygraph.index.store import EncoderInfo, Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.runtime.compiling import CompiledLayers
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
from waygraph.pipeline.jobs.encoding.batches import StateBatch

FEEDERS = 4
VIEWPORT = (1280, 800)
BATCH = Settings().jobs.states_per_batch
SITES, STATES = 4, 200


def make_screenshots(store: str, first: int, count: int, size: tuple[int, int]) -> list[Observation]:
    """Draw pages, store them as the explorer does (JPEG, quality 60), and return their observations."""
    blobs = Store.open(store).blobs
    found = []
    for number in range(first, first + count):
        key = blobs.put(drawn_page(np.random.default_rng(number), *size))
        found.append(Observation(f"n{number}", f"http://synthetic.example/{number}", "", (), screenshot=key))
    return found


@contextmanager
def gpu_busy_share() -> Iterator[list[float]]:
    """Sample the share of time in which a kernel ran. The list holds the mean once the block has ended."""
    share: list[float] = []
    samples: list[int] = []
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.05):
            samples.append(torch.cuda.utilization())

    thread = threading.Thread(target=sample)
    if not torch.cuda.is_available():
        yield share
        return
    thread.start()
    try:
        yield share
    finally:
        ended.set()
        thread.join()
    if samples:
        share.append(sum(samples) / len(samples) / 100)


def encode_settings(folder: Path) -> EncodeSettings:
    return EncodeSettings(encoder="jina-v4", weights=folder)


def actor(folder: Path, *, seconds: float, tiny: bool) -> dict[str, Any]:
    """Feed the pool for `seconds` after a first round, in which the encoder compiles its layers."""
    from waygraph.cluster import ray_cluster

    size = (160, 100) if tiny else VIEWPORT
    with tempfile.TemporaryDirectory(prefix="waygraph-bench-") as store:
        Store.open(store, create=True)
        settings = Settings(store=store, encode=encode_settings(folder))
        with ray_cluster(object_store_bytes=2 * 2**30) as cluster:
            fed = asyncio.run(_feed(settings, cluster.gpus, size, seconds))
        print(fed, flush=True)
        alone = create_encoder(settings.encode, Store.open(store).blobs)
        pages = make_screenshots(store, 10**6, 3 * BATCH, size)
        alone.encode_pages(pages, {})
        rounds, began = 0, time.perf_counter()
        with gpu_busy_share() as busy:
            while not rounds or time.perf_counter() - began < seconds / 2:
                alone.encode_pages(pages, {})
                rounds += 1
        rate = rounds * len(pages) / (time.perf_counter() - began)
    fed |= {"images_per_s_direct": round(rate, 2), "idle_direct": _idle(busy)}
    fed["share_of_direct"] = round(fed["images_per_s"] / rate, 3)
    return fed


def _idle(busy: Sequence[float]) -> float | None:
    return round(1 - busy[0], 4) if busy else None


async def _feed(settings: Settings, gpus: float, size: tuple[int, int], seconds: float) -> dict[str, Any]:
    from waygraph.pipeline.jobs.actors.ray_actors import RayActors
    from waygraph.pipeline.jobs.encoding.encoder_pool import EncodeJob, EncoderPool, PoolLimits
    from waygraph.pipeline.jobs.encoding.pool_size import BATCHES_IN_FLIGHT
    from waygraph.pipeline.jobs.encoding.site_vectors import spool_vectors
    from waygraph.pipeline.jobs.encoding.vector_spool import VectorSpool

    pool = EncoderPool(
        lambda: RayActors().start(
            "waygraph.pipeline.jobs.encoding.encoder_actor:EncoderActor",
            settings,
            gpus > 0,
            cpus=1,
            gpus=1.0 if gpus else 0.0,
            concurrency=BATCHES_IN_FLIGHT + 1,
        ),
        spool_vectors,
        PoolLimits(1, 1, BATCH, settings.jobs.waiting_states),
    )
    began = time.perf_counter()
    identity = await pool.load()
    loaded = time.perf_counter() - began
    spool = VectorSpool(settings.store, "synthetic", EncoderInfo(identity.name, identity.dim, identity.fingerprint))
    numbers = iter(range(0, 10**6, BATCH))
    loop = asyncio.get_running_loop()
    done: list[tuple[float, int]] = []
    until = float("inf")

    async def feeder(processes: ProcessPoolExecutor) -> None:
        pending: list[asyncio.Future[Any]] = []
        while time.perf_counter() < until:
            seen = await loop.run_in_executor(processes, make_screenshots, settings.store, next(numbers), BATCH, size)
            jobs = tuple(EncodeJob(each.screenshot, each, spool) for each in seen)
            await pool.add(StateBatch(jobs, {}))
            pending.append(asyncio.ensure_future(count(jobs)))
        await asyncio.gather(*pending)

    async def count(jobs: tuple[Any, ...]) -> None:
        failed = [each for each in await asyncio.gather(*(job.done for job in jobs)) if each is not None]
        assert not failed, failed[0]
        done.append((time.perf_counter(), len(jobs)))

    with ProcessPoolExecutor(FEEDERS, mp_context=get_context("spawn")) as processes:
        feeders = [asyncio.ensure_future(feeder(processes)) for _ in range(FEEDERS)]
        while len(done) < 2 * BATCHES_IN_FLIGHT:  # the first batches compile
            await asyncio.sleep(0.05)
            for each in feeders:
                if each.done():
                    each.result()
        start, before = time.perf_counter(), sum(images for _, images in done)
        compiled = start - began - loaded
        with gpu_busy_share() as busy:
            await asyncio.sleep(seconds)
        end = time.perf_counter()
        images = sum(images for moment, images in done if moment <= end) - before
        until = 0.0
        await asyncio.gather(*feeders)
    report = pool.report()
    return {
        "images": images,
        "images_per_s": round(images / (end - start), 2),
        "idle": _idle(busy),
        "load_s": round(loaded, 1),
        "first_batches_s": round(compiled, 1),
        "states_per_batch": BATCH,
        "feeders": FEEDERS,
        "encoder_waited": report.idle_share,
    }


def service(folder: Path, *, seconds: float, tiny: bool) -> dict[str, Any]:
    """Ask questions, no two alike, of maps whose vectors have the encoder's fingerprint."""
    from bench.serve_load import percentiles_ms
    from bench.serve_parts import Bench, ask_all, good
    from bench.serve_process import Service
    from bench.serve_store import fill

    encoder = JinaV4Encoder.load(encode_settings(folder).model_copy(update={"compile": False}))
    rows: dict[str, Any] = {}
    for compiled in (False, True):
        encoder.compiled = CompiledLayers(encoder.model, wanted=compiled)
        taken = []
        for number in range(60):
            before = time.perf_counter()
            encoder.encode_query(f"where do I change the delivery address of order number {number}")
            taken.append((time.perf_counter() - before) * 1_000)
        p50, p99 = quantiles(taken[10:], (0.5, 0.99), 2)
        rows[f"question alone, {'compiled' if compiled else 'not compiled'}"] = {
            "p50_ms": p50,
            "p99_ms": p99,
            "first_ms": round(taken[0]),
        }
    with tempfile.TemporaryDirectory(prefix="waygraph-bench-") as location:
        store = Store.open(location, create=True)
        fill(store, SITES, STATES, encoder)
        del encoder
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        environment = {
            "WAYGRAPH_ENCODE__ENCODER": "jina-v4",
            "WAYGRAPH_ENCODE__WEIGHTS": str(folder),
            "WAYGRAPH_VECTORS__ENGINE": "packed",
        }
        os.environ.update(environment)
        bench = Bench(store, None, SITES, STATES, seconds)  # type: ignore[arg-type]  # these parts encode nothing
        began = time.perf_counter()
        gpus = 1.0 if torch.cuda.is_available() else 0.0
        with Service(store.location, encoder_replicas=1, encoder_gpus=gpus) as running:
            ask_all(running, bench.searches(1), clients=1, calls=1 if tiny else 20)
            rows["ready_s"] = round(time.perf_counter() - began, 1)
            for clients in (1, 16):
                ask_all(running, bench.searches(2 + clients), clients=clients, seconds=1)
                replies = ask_all(running, bench.searches(clients), clients=clients, seconds=seconds)
                fine = good(replies)
                p50, p99 = percentiles_ms(fine)
                rows[f"search, {clients} clients"] = {
                    "p50_ms": p50,
                    "p99_ms": p99,
                    "per_s": round(len(fine) / seconds, 1),
                    "errors": len(replies) - len(fine),
                }
    return rows


def main() -> None:
    parts = {"service": service, "actor": actor}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=sorted(parts))
    parser.add_argument("--output", type=Path, help="also write the report there, as JSON")
    parser.add_argument("--checkpoint", type=Path, help="folder of a checkpoint, made there if it does not exist")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tiny", action="store_true", help="a tiny network, which says nothing about speed")
    options = parser.parse_args()
    report: dict[str, Any] = {
        **run_info(),
        "card": torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU",
        "weights": "tiny" if options.tiny else "true sizes, random",
        "torch": torch.__version__,
    }
    with tempfile.TemporaryDirectory(prefix="waygraph-bench-") as scratch:
        folder = options.checkpoint or Path(scratch) / "checkpoint"
        if not folder.exists():
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            write_checkpoint(folder, device=device, tiny=options.tiny)
        for name in options.part or parts:
            report[name] = parts[name](folder, seconds=options.seconds, tiny=options.tiny)
            print(name, json.dumps(report[name], indent=1), flush=True)
            if options.output:
                options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
