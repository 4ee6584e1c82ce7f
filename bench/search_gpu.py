"""Exact MaxSim on a GPU: the parts `gpu` and `gpu, fast-plaid` of `bench.search`.

Time of a whole search, and share of the card's memory bandwidth that the scan alone reaches. The bandwidth is measured
by a large copy in the same run. Vectors are random, 746 rows of 128 numbers for each state.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import synthetic
from bench.result_files import quantiles
from waygraph.index.vectors.gpu import GpuRows, fused_kernel
from waygraph.index.vectors.packed import PackedIndex, PackedRows

STATES = (838, 20_000, 100_000)
QUERY_ROWS = (20, 120)
K = 10
CALLS = 15
FUSED, SINGLE, HALF = "packed, fused kernel", "packed, torch products, float32", "packed, torch products, bfloat16"
#: Most states for each engine: float32 takes twice the memory, and after bfloat16 nearly all states are rescored.
MOST_STATES = {FUSED: 100_000, SINGLE: 20_000, HALF: 838}


def random_pages(states: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Make unit rows as float16, on the GPU."""
    random = torch.Generator("cuda").manual_seed(seed)
    pages: dict[str, np.ndarray] = {}
    for first in range(0, states, 5_000):
        count = min(5_000, states - first)
        rows = torch.randn(count, synthetic.ROWS, synthetic.DIM, generator=random, device="cuda")
        made = torch.nn.functional.normalize(rows, dim=2).half().cpu().numpy()
        pages |= {f"n{first + number:06}": page for number, page in enumerate(made)}
    return pages


def random_queries(rows: int, count: int) -> list[np.ndarray]:
    random = np.random.default_rng(rows)
    return [synthetic.unit(random.standard_normal((rows, synthetic.DIM), dtype=np.float32)) for _ in range(count)]


def bandwidth() -> float:
    """Bytes per second that a copy within the card's memory reads and writes."""
    source = torch.empty(2**31, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / _device_seconds(lambda: target.copy_(source))


def gpu() -> list[dict[str, Any]]:
    """Search by the fused kernel, and by torch's products in each type, which is what runs without it."""
    if not torch.cuda.is_available():
        return [{"engine": "none", "note": "no GPU"}]
    peak = bandwidth()
    kernel = fused_kernel()
    assert kernel is not None, "late-interaction-kernels is not installed"
    device = torch.device("cuda")
    rows: list[dict[str, Any]] = []
    for states in STATES:
        pages = random_pages(states)
        numbers = states * synthetic.ROWS * synthetic.DIM
        truth: dict[int, list[list[str]]] = {}
        for engine in (each for each, most in MOST_STATES.items() if states <= most):
            dtype = "" if engine == FUSED else engine.rpartition(" ")[2]
            index = PackedIndex(synthetic.DIM, device="cuda", dtype=dtype)
            index.add(pages.items())
            began = time.perf_counter()
            index.search(random_queries(1, 1)[0], K)
            packing = time.perf_counter() - began
            size = 4 if engine == SINGLE else 2
            for m in QUERY_ROWS:
                asked = random_queries(m, CALLS)
                began = time.perf_counter()
                index.search(asked[0], K)
                first = time.perf_counter() - began
                found, taken = [], []
                for query in asked:
                    before = time.perf_counter()
                    found.append([hit.node_id for hit in index.search(query, K)])
                    taken.append((time.perf_counter() - before) * 1_000)
                truth.setdefault(m, found)
                scan = _scan_seconds(index, asked[0], device)
                p50, most = quantiles(taken, (0.5, 1.0), 3)
                row = {
                    "engine": engine,
                    "states": states,
                    "query_rows": m,
                    "p50_ms": p50,
                    "max_ms": most,
                    "scan_ms": round(scan * 1_000, 3),
                    "bandwidth_share": round(numbers * size / scan / peak, 3),
                    "first_ms": round(first * 1_000),
                    "packing_s": round(packing, 2),
                    "same_top_k": None if engine == FUSED else found == truth[m],
                    "gb_per_s_of_a_copy": round(peak / 1e9),
                }
                print(row, flush=True)
                rows.append(row)
            index.close()
            del index
            torch.cuda.empty_cache()
    return rows


def fast_plaid(states: int = 838) -> list[dict[str, Any]]:
    """fast-plaid on the card, in a process of its own, with the same structured vectors as ours."""
    if not torch.cuda.is_available():
        return [{"engine": "none", "note": "no GPU"}]
    site = synthetic.site(0, states, "pages")
    asked = np.stack([query for *_, query in synthetic.questions([site], CALLS, 20)])
    index = PackedIndex(synthetic.DIM, device="cuda")
    index.add((str(number), page) for number, page in enumerate(site.pages))
    index.search(asked[0], K)
    truth, taken = [], []
    for query in asked:
        before = time.perf_counter()
        truth.append({hit.node_id for hit in index.search(query, K)})
        taken.append((time.perf_counter() - before) * 1_000)
    rows: list[dict[str, Any]] = [
        {"engine": FUSED, "states": states, "p50_ms": quantiles(taken, (0.5,), 3)[0], "recall": 1.0}
    ]
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "vectors.npz", pages=site.pages, queries=asked)
        command = [sys.executable, "-m", "bench.search_fast_plaid", folder, str(K), "cuda"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        if done.returncode:
            return [*rows, {"engine": "fast-plaid", "states": states, "note": done.stderr.strip().splitlines()[-1]}]
        found = np.load(Path(folder) / "found.npz")
        recall = np.mean([len(truth[n] & set(map(str, ids))) / K for n, ids in enumerate(found["ids"].tolist())])
        p50 = quantiles(found["milliseconds"].tolist(), (0.5,), 3)[0]
        rows.append({"engine": "fast-plaid", "states": states, "p50_ms": p50, "recall": round(float(recall), 3)})
    for row in rows:
        print(row, flush=True)
    return rows


def _scan_seconds(index: PackedIndex, query: np.ndarray, device: torch.device) -> float:
    packed = index._packed  # noqa: SLF001
    if isinstance(packed, GpuRows):
        return _device_seconds(lambda: packed.scan(query))
    assert isinstance(packed, PackedRows)
    on_card = torch.from_numpy(query).to(device, packed.chunks[0].rows.dtype)
    return _device_seconds(lambda: [chunk.best_products(on_card) for chunk in packed.chunks])


def _device_seconds(work: Callable[[], object]) -> float:
    """Return the median time on the GPU of several calls."""
    work()
    taken: list[float] = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) / 1_000)
    return sorted(taken)[len(taken) // 2]
