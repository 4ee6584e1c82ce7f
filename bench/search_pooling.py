"""Recall of candidates by way of pooling rows: the part `pooling` of `bench.search`.

Beside synthetic screenshots: real text. Every page is the documentation of a module of Python's standard library, each
row a token of it as the default encoder's model sees it, every question the first sentence of some docstring.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

from bench import synthetic
from bench.search_engines import K
from waygraph.index.vectors import PackedIndex
from waygraph.index.vectors.pooling import merge_neighbours, pool_windows
from waygraph.pipeline.encode.text.weights import find_weights

#: Tokens that the model reads at once, and pieces of so many of a page.
WINDOW, WINDOWS = 256, 3
TEXT_PAGES = 200
QUESTIONS = 24

Pages = dict[str, np.ndarray]
Pool = Callable[[np.ndarray, int], np.ndarray]


def grid_rows_and_columns(rows: np.ndarray, _: int) -> np.ndarray:
    """Means of the rows and of the columns of the patch grid."""
    height, width = synthetic.GRID
    grid = rows[: height * width].astype(np.float32).reshape(height, width, -1)
    return synthetic.unit(np.concatenate([grid.mean(axis=1), grid.mean(axis=0)]))


def clusters(rows: np.ndarray, count: int) -> np.ndarray:
    """Means of Ward's clusters over all rows: what token pooling of late-interaction models usually is."""
    from scipy.cluster.hierarchy import fcluster, linkage

    full = rows.astype(np.float32)
    labels = fcluster(linkage(full.astype(np.float64), "ward"), min(count, len(full)), "maxclust")
    return synthetic.unit(np.stack([full[labels == label].mean(axis=0) for label in np.unique(labels)]))


def pooling() -> list[dict[str, Any]]:
    """Recall of the exact top 10 among the first 10, 50 and 100 of what pooled rows alone find."""
    rows = []
    for kind in ("pages", "near-duplicates"):
        sites = [synthetic.site(number, 150, kind) for number in range(2)]
        known = {f"{s}/{n:03}": page for s, site in enumerate(sites) for n, page in enumerate(site.pages)}
        asked = [query for *_, query in synthetic.questions(sites, QUESTIONS, 20)]
        rows += _compared(f"synthetic {kind}", known, asked, grid=True)
    rows += _compared("tokens of real text", *_text(), grid=False)
    return rows


def _compared(vectors: str, known: Pages, asked: list[np.ndarray], *, grid: bool) -> list[dict[str, Any]]:
    truth = _found(known, asked, K)
    longest = max(map(len, known.values()))
    methods: list[tuple[str, Pool, int]] = [
        ("one mean", pool_windows, 1),
        ("windows", pool_windows, 20),
        ("windows", pool_windows, 32),
        ("neighbours merged", merge_neighbours, 20),
        ("clusters (Ward)", clusters, 20),
        ("windows, by 3", pool_windows, -3),
        ("neighbours merged, by 3", merge_neighbours, -3),
        ("clusters (Ward), by 3", clusters, -3),
    ]
    if grid:
        methods.append(("grid rows and columns", grid_rows_and_columns, 0))
    rows = []
    for name, pool, count in methods:
        began = time.perf_counter()
        few = {n: pool(page, count if count >= 0 else max(1, len(page) // -count)) for n, page in known.items()}
        lasted = (time.perf_counter() - began) / len(known) * 1_000
        found = _found(few, asked, 100)
        recall = {
            at: np.mean([len(set(best) & set(hits[:at])) / K for best, hits in zip(truth, found, strict=True)])
            for at in (10, 50, 100)
        }
        rows.append(
            {
                "vectors": vectors,
                "states": len(known),
                "longest": longest,
                "pooling": name,
                "rows": round(float(np.mean([len(page) for page in few.values()])), 1),
                "best_first": round(float(np.mean([h[0] == t[0] for h, t in zip(found, truth, strict=True)])), 3),
                **{f"recall_in_{at}": round(float(value), 3) for at, value in recall.items()},
                "ms_per_state": round(lasted, 2),
            }
        )
    return rows


def _found(known: Pages, asked: list[np.ndarray], k: int) -> list[list[str]]:
    index = PackedIndex(next(iter(known.values())).shape[1])
    index.add(known.items())
    return [[hit.node_id for hit in index.search(query, k)] for query in asked]


def _text() -> tuple[Pages, list[np.ndarray]]:
    """Token vectors of pages (float16) and of questions."""
    weights = find_weights()
    tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = AutoModel.from_pretrained(weights.folder, local_files_only=True, dtype=torch.float32).eval()

    def tokens(text: str, most: int) -> np.ndarray:
        ids = tokenizer.encode(text, add_special_tokens=False).ids[: most * WINDOW]
        parts = [ids[start : start + WINDOW] for start in range(0, len(ids), WINDOW)]
        with torch.inference_mode():
            seen = [model(input_ids=torch.tensor([part])).last_hidden_state[0] for part in parts]
        return torch.nn.functional.normalize(torch.cat(seen), dim=1).numpy()

    pages: Pages = {}
    sentences = []
    for name, docs in _documented_modules():
        pages[name] = tokens("\n".join(docs), WINDOWS).astype(np.float16)
        sentences.append(re.split(r"(?<=\.)\s", " ".join(docs[-1].split()))[0])
    picked = np.random.default_rng(5).choice(len(sentences), QUESTIONS, replace=False)
    return pages, [tokens(sentences[i], 1) for i in picked]


def _documented_modules() -> list[tuple[str, list[str]]]:
    found = []
    library = Path(sysconfig.get_path("stdlib"))
    for file in sorted([*library.glob("*.py"), *library.glob("[a-z]*/*.py")]):
        if "site-packages" in file.parts or "test" in str(file.relative_to(library)):
            continue
        tree = ast.parse(file.read_bytes())
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
        docs = [f"{getattr(n, 'name', file.stem)}: {text}" for n in nodes if (text := ast.get_docstring(n))]
        if sum(map(len, docs)) > 2_000:
            found.append((str(file.relative_to(library)), docs))
    step = max(1, len(found) // TEXT_PAGES)
    return found[::step][:TEXT_PAGES]
