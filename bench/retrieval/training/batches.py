"""Batches of pages with queries about them. Half of a batch's pages are alike, so that they are hard negatives."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.retrieval.training.pairs import Package, Page, Query

Vectors = NDArray[np.float32]

_HASHES = 512


@dataclass(frozen=True, slots=True)
class Batch:
    """Pages of one package and queries, whose `page` numbers the batch's pages."""

    pages: tuple[Page, ...]
    queries: tuple[Query, ...]


def read_pairs(folder: Path, names: Sequence[str] = ()) -> list[Package]:
    """Read what `bench.retrieval.training.pairs` wrote: all packages, or those of `names`."""
    packages = []
    for file in sorted(folder.glob("*.json")):
        if names and file.stem not in names:
            continue
        content = json.loads(file.read_text())
        pages = tuple(Page(page["context"], tuple(page["rows"])) for page in content["pages"])
        packages.append(Package(content["name"], pages, tuple(Query(**query) for query in content["queries"])))
    return packages


def plan(packages: Sequence[Package], size: int, rows: int, most: int, seed: int) -> list[Batch]:
    """Return the batches of all packages in random order; they depend on pairs and parameters alone.

    Parameters
    ----------
    packages
        The packages.
    size
        Pages of a batch.
    rows
        Rows kept of each page, chosen at random.
    most
        Batches of one package, so that none outweighs the others.
    seed
        Start of the random numbers.
    """
    chance = random.Random(seed)
    batches = [batch for package in packages for batch in _batches_of(package, size, rows, most, chance)]
    chance.shuffle(batches)
    return batches


def _batches_of(package: Package, size: int, rows: int, most: int, chance: random.Random) -> Iterator[Batch]:
    queries: dict[int, list[Query]] = {}
    for query in package.queries:
        queries.setdefault(query.page, []).append(query)
    # Passages outnumber pages several times: as many as there are pages, or as a batch needs.
    passages = [page for page, about in sorted(queries.items()) if about[0].kind == "passage"]
    left = sorted(queries.keys() - set(passages))
    left += chance.sample(passages, min(len(passages), max(len(left), size)))
    chance.shuffle(left)
    vectors = _word_vectors([package.pages[page].context for page in left])
    vector_of = dict(zip(left, vectors, strict=True))
    for _ in range(most):
        if len(left) < size:
            return
        alike = np.stack([vector_of[page] for page in left]) @ vector_of[left[-1]]
        chosen = [left[i] for i in np.argsort(-alike, kind="stable")[: size // 2]]
        chosen += chance.sample(sorted(set(left) - set(chosen)), size - len(chosen))
        left = [page for page in left if page not in set(chosen)]
        yield Batch(
            tuple(_thinned(package.pages[page], rows, chance) for page in chosen),
            tuple(
                Query(query.text, number, query.kind)
                for number, page in enumerate(chosen)
                for query in chance.sample(queries[page], min(2, len(queries[page])))
            ),
        )


def _word_vectors(texts: Sequence[str]) -> Vectors:
    """Return unit vectors of shape (texts, 512): words, weighted by rarity, added up by their hash."""
    words = [set(text.casefold().split()) for text in texts]
    shown = Counter(word for of_text in words for word in of_text)
    vectors = np.zeros((len(texts), _HASHES), np.float32)
    for row, of_text in zip(vectors, words, strict=True):
        for word in of_text:
            row[zlib.crc32(word.encode()) % _HASHES] += np.log(len(texts) / shown[word])
    unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit


def _thinned(page: Page, rows: int, chance: random.Random) -> Page:
    if len(page.rows) <= rows:
        return page
    kept = sorted(chance.sample(range(len(page.rows)), rows))
    return Page(page.context, tuple(page.rows[i] for i in kept))
