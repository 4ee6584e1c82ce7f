"""Synthetic multi-vectors with the structure of page screenshots, and queries for them.

A site has a header and a navigation that all its pages share, page templates, and blocks of content. A patch says what
its block says, a little of the page, and something of its own. The near-duplicate kind differs from its siblings in one
small block, which the question asks about. No model made these vectors: they measure the speed of an index and its
recall against exact MaxSim, not the quality of retrieval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

#: 21 x 35 patches and 11 tokens around them: what jina-embeddings-v4 makes of a page of 602,112 pixels.
GRID = (21, 35)
EXTRA = 11
ROWS = GRID[0] * GRID[1] + EXTRA
DIM = 128
_BANK = 8_192

Kind = Literal["pages", "near-duplicates"]
Rows = NDArray[np.float32]


@dataclass(frozen=True)
class SyntheticSite:
    """Pages of one site as float16, shape (states, ROWS, DIM), and for each its patches that no other page has."""

    pages: NDArray[np.float16]
    own: list[NDArray[np.intp]]


def unit(rows: NDArray[np.floating]) -> Rows:
    made: Rows = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
    return made


def site(seed: int, states: int, kind: Kind) -> SyntheticSite:
    """One site; equal seeds give equal sites."""
    rng = np.random.default_rng([7, seed])
    bank = unit(rng.standard_normal((_BANK, DIM), dtype=np.float32))
    shared = _blocks(rng, bank)
    templates = [_blocks(rng, bank) for _ in range(1 if kind == "near-duplicates" else 8)]
    pages = np.empty((states, ROWS, DIM), np.float16)
    own = []
    texture = [bank[rng.integers(_BANK, size=ROWS)] for _ in templates]
    for number in range(states):
        which = int(rng.integers(len(templates)))
        rows = templates[which].copy()
        frame = _frame()
        rows[frame] = shared[frame]
        rows += 0.8 * texture[which]
        mine = _rectangles(rng, 1 if kind == "near-duplicates" else 6)
        content = bank[rng.integers(_BANK, size=len(mine))]
        for patches, concept in zip(mine, content, strict=True):
            rows[patches] = concept + 0.8 * bank[rng.integers(_BANK, size=len(patches))]
        # What is around a patch colours it: the same button differs a little from page to page.
        rows += 0.25 * bank[rng.integers(_BANK)] + 0.25 * bank[rng.integers(_BANK, size=ROWS)]
        pages[number] = unit(rows)
        own.append(np.unique(np.concatenate(mine)))
    return SyntheticSite(pages, own)


def questions(sites: list[SyntheticSite], count: int, tokens: int, seed: int = 0) -> Iterator[tuple[int, int, Rows]]:
    """(site, state, query of shape (tokens, DIM)): a quarter of the tokens asks for what only that page has."""
    rng = np.random.default_rng([11, seed])
    for _ in range(count):
        where = int(rng.integers(len(sites)))
        state = int(rng.integers(len(sites[where].pages)))
        needles = max(1, tokens // 4)
        rows = np.concatenate([rng.choice(sites[where].own[state], needles), rng.integers(ROWS, size=tokens - needles)])
        wanted = sites[where].pages[state][rows].astype(np.float32)
        yield where, state, unit(wanted + 0.9 * unit(rng.standard_normal((tokens, DIM), dtype=np.float32)))


def _frame() -> NDArray[np.intp]:
    cells = np.arange(GRID[0] * GRID[1]).reshape(GRID)
    return np.concatenate([cells[:2].ravel(), cells[2:, :6].ravel()])


def _blocks(rng: np.random.Generator, bank: Rows) -> Rows:
    rows = np.repeat(bank[rng.integers(_BANK, size=1)], ROWS, axis=0)
    for patches in _rectangles(rng, 24):
        rows[patches] = bank[rng.integers(_BANK)]
    rows[-EXTRA:] = bank[rng.integers(_BANK, size=EXTRA)]
    return rows


def _rectangles(rng: np.random.Generator, count: int) -> list[NDArray[np.intp]]:
    cells = np.arange(GRID[0] * GRID[1]).reshape(GRID)
    found = []
    for _ in range(count):
        height, width = int(rng.integers(1, 5)), int(rng.integers(2, 11))
        top, left = int(rng.integers(2, GRID[0] - height + 1)), int(rng.integers(6, GRID[1] - width + 1))
        found.append(cells[top : top + height, left : left + width].ravel())
    return found
