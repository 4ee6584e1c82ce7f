"""Which matrices may enter an index or a search, and how are hits put in order? The same for every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from index.vectors.protocol import MAX_VALUES_PER_MULTIVECTOR, ScoredNode
from waygraph.errors import InvalidInput

#: Scores are compared and returned to this many decimals: a difference below it is the order of a float32 sum.
SCORE_DECIMALS = 6

#: A question of more rows is no question: scoring it would take gigabytes for the products alone.
MAX_QUERY_ROWS = 2_048


def checked_page(node_id: str, page: NDArray[np.floating], dim: int) -> NDArray[np.floating]:
    """`page`, when it can be stored as a multi-vector.

    Raises
    ------
    InvalidInput
        When it is empty, has another dim, is not finite (as float16, which the engines store), or is too large.

    """
    rows = _checked(f"State '{node_id}'", page, dim)
    if rows.size >= MAX_VALUES_PER_MULTIVECTOR:
        most = (MAX_VALUES_PER_MULTIVECTOR - 1) // dim
        raise InvalidInput(
            f"State '{node_id}' has {len(rows)} vectors of {dim} values; at most {most} fit into a multi-vector.",
            hint="Pool or tile the page before indexing it.",
        )
    if np.abs(rows).max() > np.finfo(np.float16).max:
        raise InvalidInput(f"State '{node_id}' has values too large for float16.", hint="Normalise its vectors.")
    return rows


def checked_query(query: NDArray[np.floating], dim: int) -> NDArray[np.float32]:
    """`query` as float32, when it can be scored; otherwise InvalidInput."""
    rows = np.ascontiguousarray(_checked("The query", query, dim), dtype=np.float32)
    if len(rows) > MAX_QUERY_ROWS:
        raise InvalidInput(
            f"The query has {len(rows)} vectors; at most {MAX_QUERY_ROWS} can be searched for.",
            hint="Ask a shorter question.",
        )
    return rows


def checked_k(k: int) -> int:
    """`k`, when it is a number of hits; otherwise InvalidInput."""
    if k < 1:
        raise InvalidInput(f"{k} hits cannot be searched for.", hint="Ask for at least one.")
    return k


def _checked(whose: str, matrix: NDArray[np.floating], dim: int) -> NDArray[np.floating]:
    rows = np.asarray(matrix)
    if rows.ndim != 2 or rows.dtype.kind != "f" or not rows.size:
        raise InvalidInput(
            f"{whose} has no multi-vector: got shape {rows.shape} of {rows.dtype}.",
            hint=f"Expected at least one row of {dim} floats.",
        )
    if rows.shape[1] != dim:
        raise InvalidInput(
            f"{whose} has vectors of {rows.shape[1]} values, this index holds vectors of {dim}.",
            hint="Use the encoder that made the index.",
        )
    if not np.isfinite(rows).all():
        raise InvalidInput(f"{whose} has vectors with infinite or undefined values.", hint="Check the encoder.")
    return rows


def ranked(scores: Iterable[tuple[str, float]], k: int) -> list[ScoredNode]:
    """The k best of (node id, score), best first, ties by node id."""
    hits = [ScoredNode(node_id, round(score, SCORE_DECIMALS)) for node_id, score in scores]
    hits.sort(key=lambda hit: (-hit.score, hit.node_id))
    return hits[:k]


def ranked_from(fetch: Callable[[int], list[tuple[str, float]]], k: int, total: int) -> list[ScoredNode]:
    """The k best from an engine that breaks ties in its own way: `fetch(limit)` gives its `limit` best.

    An engine may cut through a group of equal scores anywhere. So one more than k is fetched, and more while the last
    one fetched still ties with the k-th.
    """
    limit = min(k + 1, total)
    while limit:
        hits = ranked(fetch(limit), limit)
        if limit >= total or len(hits) < limit or hits[-1].score < hits[k - 1].score:
            return hits[:k]
        limit = min(2 * limit, total)
    return []
