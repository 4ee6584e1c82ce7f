"""Timing of fast-plaid on the vectors of a folder; `bench.search_engines` runs it in its own environment."""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from fast_plaid import search

folder, k = Path(sys.argv[1]), int(sys.argv[2])
device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
given = np.load(folder / "vectors.npz")
index = search.FastPlaid(index=str(folder / "index"), device=device)
index.create(documents_embeddings=[torch.from_numpy(page).float() for page in given["pages"]])
found, taken = [], []
for number, query in enumerate([given["queries"][0], *given["queries"]]):
    before = time.perf_counter()
    hits = index.search(queries_embeddings=torch.from_numpy(query)[None], top_k=k)
    if number:  # the first one warms up
        taken.append((time.perf_counter() - before) * 1_000)
        found.append([document for document, _ in hits[0]])
np.savez(folder / "found.npz", ids=np.array(found), milliseconds=np.array(taken))
