"""Time of an exact search by engine, number of states and query length: the parts `engines`, `others` and `growth`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from qdrant_client import QdrantClient

from bench import synthetic
from waygraph.index.vectors import EdgeIndex, ExactIndex, MapKey, PackedIndex, QdrantClientIndex, VectorIndex, maxsim
from waygraph.index.vectors.validation import top_k

STATES = 838
K = 10
#: (query rows, engine): milliseconds at the median.
TARGETS_MS = {(20, "Qdrant Edge, f16"): 175, (20, "packed, float32"): 75, (120, "packed, float32"): 160}
#: Set to a Python that has it: fast-plaid pins another torch than ours.
FAST_PLAID_PYTHON = "WAYGRAPH_FAST_PLAID_PYTHON"

Pages = dict[str, np.ndarray]


def pages(states: int) -> tuple[Pages, list[synthetic.SyntheticSite]]:
    """States of as many sites as it takes, at most 200 on each but the first ones of a single site."""
    per_site = states if states <= 1_000 else 200
    sites = [synthetic.site(number, per_site, "pages") for number in range(states // per_site)]
    return {f"{s:03}/{n:04}": page for s, site in enumerate(sites) for n, page in enumerate(site.pages)}, sites


def exact() -> list[dict[str, Any]]:
    """Ours, on the same states and the same questions, one question at a time."""
    known, questions, truth = _task((1, 20, 120))
    rows = []
    for name, opened in _engines(known):
        with opened as search:
            for m, asked in questions.items():
                few = asked[:4] if "loop" in name else asked
                rows.append(
                    _row(
                        name, m, _milliseconds(search, few), TARGETS_MS.get((m, name)), _recall(search, asked, truth[m])
                    )
                )
    return rows


def others() -> list[dict[str, Any]]:
    """Measure other engines on the same states and questions."""
    known, questions, truth = _task((20,))
    asked = questions[20]
    local = QdrantClientIndex(QdrantClient(":memory:"), synthetic.DIM, MapKey("shop", 1, ""))
    local.add(known.items())

    def search(query: np.ndarray) -> list[str]:
        return _ids(local.search(query, K))

    row = _row(
        "qdrant-client, in process", 20, _milliseconds(search, asked[:4]), None, _recall(search, asked, truth[20])
    )
    return [row, _fast_plaid(known, asked, truth[20])]


def growth() -> list[dict[str, Any]]:
    """Ask the same questions of more and more states, on sites of 200."""
    rows = []
    for states in (1_000, 5_000, 20_000):
        known, sites = pages(states)
        asked = [query for *_, query in synthetic.questions(sites, 5, 20)]
        engines: dict[str, Callable[[], VectorIndex]] = {
            "packed, bfloat16": lambda: PackedIndex(synthetic.DIM, dtype="bfloat16")
        }
        if states <= 5_000:
            engines["Qdrant Edge, f16"] = lambda: EdgeIndex(synthetic.DIM)
        for name, make in engines.items():
            index = make()
            began = time.perf_counter()
            index.add(known.items())
            index.search(asked[0], K)
            filled = time.perf_counter() - began
            taken = _milliseconds(partial(_searched, index), asked)
            median = round(float(np.median(taken)), 1)
            rows.append(
                {"states": states, "engine": name, "query_rows": 20, "p50_ms": median, "fill_s": round(filled, 1)}
            )
            index.close()
        del known, sites
    return rows


def _task(query_rows: tuple[int, ...]) -> tuple[Pages, dict[int, list[np.ndarray]], dict[int, list[list[str]]]]:
    """States, questions by length, and what float64 finds for the first few of them."""
    known, sites = pages(STATES)
    questions = {m: [query for *_, query in synthetic.questions(sites, 12, m)] for m in query_rows}
    truth = {
        m: [_ids(top_k(((n, maxsim(q, p)) for n, p in known.items()), K)) for q in asked[:3]]
        for m, asked in questions.items()
    }
    return known, questions, truth


def _recall(search: Callable[[np.ndarray], list[str]], asked: list[np.ndarray], truth: list[list[str]]) -> float:
    return float(np.mean([len(set(search(q)) & set(t)) / K for q, t in zip(asked, truth, strict=False)]))


def _engines(known: Pages) -> Iterator[tuple[str, Any]]:
    yield "Qdrant Edge, f16", _indexed(lambda: EdgeIndex(synthetic.DIM), known)
    yield "packed, float32", _indexed(lambda: PackedIndex(synthetic.DIM), known)
    yield "packed, bfloat16", _indexed(lambda: PackedIndex(synthetic.DIM, dtype="bfloat16"), known)
    yield "NumPy, packed", _indexed(lambda: ExactIndex(synthetic.DIM), known)
    yield "NumPy loop over states", _loop(known)
    yield (
        "qdrant-client, in process",
        _indexed(lambda: QdrantClientIndex(QdrantClient(":memory:"), synthetic.DIM, MapKey("shop", 1, "")), known),
    )


@contextmanager
def _indexed(make: Callable[[], VectorIndex], known: Pages) -> Iterator[Callable[[np.ndarray], list[str]]]:
    index = make()
    index.add(known.items())
    try:
        yield lambda query: _ids(index.search(query, K))
    finally:
        index.close()


@contextmanager
def _loop(known: Pages) -> Iterator[Callable[[np.ndarray], list[str]]]:
    full = {name: page.astype(np.float32) for name, page in known.items()}
    yield lambda query: _ids(
        top_k(((name, float((query @ page.T).max(axis=1).mean())) for name, page in full.items()), K)
    )


def _fast_plaid(known: Pages, asked: list[np.ndarray], truth: list[list[str]]) -> dict[str, Any]:
    """Measure a PLAID index in its own environment; it is approximate, so the row has its recall beside its speed."""
    name = "fast-plaid, 4 bits (approximate)"
    python = os.environ.get(FAST_PLAID_PYTHON) or (
        sys.executable if importlib.util.find_spec("fast_plaid") is not None else None
    )
    if python is None:
        return {
            "engine": name,
            "query_rows": 20,
            "note": f"not installed; {FAST_PLAID_PYTHON} names no Python that has it",
        }
    with tempfile.TemporaryDirectory() as folder:
        vectors = np.stack(list(known.values()))
        np.savez(Path(folder) / "vectors.npz", pages=vectors, queries=np.stack(asked))
        done = subprocess.run(
            [python, str(Path(__file__).parent / "search_fast_plaid.py"), folder, str(K)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return {"engine": name, "query_rows": 20, "note": done.stderr.strip().splitlines()[-1][:200]}
        found = np.load(Path(folder) / "found.npz")
    names = list(known)
    right = np.mean([len({names[i] for i in ids} & set(t)) / K for ids, t in zip(found["ids"], truth, strict=False)])
    return _row(name, 20, found["milliseconds"].tolist(), None, float(right))


def _milliseconds(search: Callable[[np.ndarray], object], asked: list[np.ndarray]) -> list[float]:
    search(asked[0])
    taken = []
    for query in asked:
        before = time.perf_counter()
        search(query)
        taken.append((time.perf_counter() - before) * 1_000)
    return taken


def _row(name: str, query_rows: int, taken: list[float], target: float | None, right: float) -> dict[str, Any]:
    return {
        "engine": name,
        "query_rows": query_rows,
        "p50_ms": round(float(np.median(taken)), 1),
        "worst_ms": round(max(taken), 1),
        "target_ms": target,
        "recall_at_10": round(right, 3),
        "threads": torch.get_num_threads(),
    }


def _searched(index: VectorIndex, query: np.ndarray) -> list[str]:
    return _ids(index.search(query, K))


def _ids(hits: list[Any]) -> list[str]:
    return [hit.node_id for hit in hits]
