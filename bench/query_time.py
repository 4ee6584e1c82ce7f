"""Benchmark of the text encoders: time of a query, and what bfloat16 changes of its vector.

    python -m bench.query_time [--encoder text-large] [--threads N ...] [--save]

Every third question about the dev sites of `bench/retrieval` is encoded alone, as services do. CPU time counts on
a busy machine; the wall time at the 10th percentile is near that of a quiet one. WAYGRAPH_ENCODE__WEIGHTS names the
weights of `text-large`. `--save` writes bench/results/query-time.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bench.result_files import RESULTS, processor, run_info, write_result
from bench.retrieval.maps import names
from bench.retrieval.queries import read_queries
from waygraph.core.settings import Settings
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.pipeline.encode.text.weights import MODELS

#: Queries that are encoded before the measurement.
_WARM_UP = 5


def questions() -> list[str]:
    """Return every third question about the dev sites."""
    return [question.ask for site in names("dev") for question in read_queries(site)][::3]


def measure(encoder: TextEncoder, asks: Sequence[str]) -> tuple[dict[str, float], np.ndarray]:
    """Return milliseconds per query, and the vectors of all."""
    encoder.encode_queries(asks[:_WARM_UP])
    cpu, wall, vectors = time.process_time(), [], []
    for ask in asks:
        started = time.perf_counter()
        vectors.append(encoder.encode_query(ask))
        wall.append(1000 * (time.perf_counter() - started))
    times = {
        "cpu_ms": 1000 * (time.process_time() - cpu) / len(asks),
        "wall_ms_10th_percentile": float(np.quantile(wall, 0.1)),
        "wall_ms_median": float(np.median(wall)),
    }
    return {name: round(value, 1) for name, value in times.items()}, np.concatenate(vectors)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", nargs="+", choices=sorted(MODELS), default=["text-large"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--save", action="store_true", help="write bench/results/query-time.json")
    options = parser.parse_args()
    asks, rows = questions(), []
    for name in options.encoder:
        configured = Settings().encode
        weights = None if name == "text" else configured.weights
        exact: np.ndarray | None = None
        for dtype in ("float32",) if name == "text" else ("float32", "bfloat16"):
            started = time.perf_counter()
            encoder = TextEncoder.load(configured.model_copy(update={"dtype": dtype, "weights": weights}), name)
            loaded = time.perf_counter() - started
            for threads in options.threads:
                torch.set_num_threads(threads)
                times, vectors = measure(encoder, asks)
                row: dict[str, Any] = {"encoder": encoder.fingerprint, "precision": dtype, "threads": threads, **times}
                if exact is None:
                    exact = vectors
                cosines = (exact * vectors).sum(1)
                row |= {"least_cosine": round(float(cosines.min()), 5), "load_seconds": round(loaded, 2)}
                print(json.dumps(row), flush=True)
                rows.append(row)
    if options.save:
        write_result(RESULTS / "query-time.json", {**run_info(), **processor(), "queries": len(asks), "rows": rows})


if __name__ == "__main__":
    main()
