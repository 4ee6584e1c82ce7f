"""Validation of matrices and ranking of hits, shared by all engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from waygraph.core.errors import InvalidInput
from waygraph.index.vectors.protocol import MAX_VALUES_PER_MULTIVECTOR, ScoredNode

#: Scores are compared and returned to this many decimals: smaller differences come from the order of a float32 sum.
SCORE_DECIMALS = 6

#: Maximum number of query rows: for more, the products alone would take gigabytes.
MAX_QUERY_ROWS = 2_048


def validate_page(node_id: str, page: NDArray[np.floating], dim: int) -> NDArray[np.floating]:
    """Return `page` if it can be stored as a multi-vector.

    Parameters
    ----------
    node_id
        Id of the state, for error messages.
    page
        Matrix of shape (n, dim).
    dim
        Number of columns of the index.

    Returns
    -------
    NDArray
        The matrix.

    Raises
    ------
    InvalidInput
        If it is empty, has another dim, is not finite (as float16, which the engines store), or is too large.
    """
    rows = _validate_matrix(f"State '{node_id}'", page, dim)
    if rows.size >= MAX_VALUES_PER_MULTIVECTOR:
        most = (MAX_VALUES_PER_MULTIVECTOR - 1) // dim
        raise InvalidInput(
            f"State '{node_id}' has {len(rows)} vectors of {dim} values; at most {most} fit into a multi-vector.",
            hint="Pool or tile the page before indexing it.",
        )
    if np.abs(rows).max() > np.finfo(np.float16).max:
        raise InvalidInput(f"State '{node_id}' has values too large for float16.", hint="Normalise its vectors.")
    return rows


def validate_query(query: NDArray[np.floating], dim: int) -> NDArray[np.float32]:
    """Return `query` as float32 if it can be scored; otherwise raise InvalidInput."""
    rows = np.ascontiguousarray(_validate_matrix("The query", query, dim), dtype=np.float32)
    if len(rows) > MAX_QUERY_ROWS:
        raise InvalidInput(
            f"The query has {len(rows)} vectors; at most {MAX_QUERY_ROWS} are allowed.",
            hint="Use a shorter query.",
        )
    return rows


def validate_k(k: int) -> int:
    """Return `k` if it is a valid number of hits; otherwise raise InvalidInput."""
    if k < 1:
        raise InvalidInput(f"A search for {k} hits is not possible.", hint="Ask for at least one.")
    return k


def _validate_matrix(subject: str, matrix: NDArray[np.floating], dim: int) -> NDArray[np.floating]:
    rows = np.asarray(matrix)
    if rows.ndim != 2 or rows.dtype.kind != "f" or not rows.size:
        raise InvalidInput(
            f"{subject} has no multi-vector: got shape {rows.shape} of {rows.dtype}.",
            hint=f"Expected at least one row of {dim} floats.",
        )
    if rows.shape[1] != dim:
        raise InvalidInput(
            f"{subject} has vectors of {rows.shape[1]} values, this index holds vectors of {dim}.",
            hint="Use the encoder that made the index.",
        )
    if not np.isfinite(rows).all():
        raise InvalidInput(f"{subject} has vectors with infinite or undefined values.", hint="Check the encoder.")
    return rows


def top_k(scores: Iterable[tuple[str, float]], k: int) -> list[ScoredNode]:
    """Return the k best of (node id, score), best first, ties by node id."""
    hits = [ScoredNode(node_id, round(score, SCORE_DECIMALS)) for node_id, score in scores]
    hits.sort(key=lambda hit: (-hit.score, hit.node_id))
    return hits[:k]


def top_k_from_engine(fetch: Callable[[int], list[tuple[str, float]]], k: int, total: int) -> list[ScoredNode]:
    """Return the k best hits of an engine that breaks ties in an unknown order.

    An engine may cut through a group of equal scores anywhere. Therefore one hit more than k is fetched, and more as
    long as the last hit fetched ties with the k-th.

    Parameters
    ----------
    fetch
        Called with a limit, returns the engine's best (node id, score) up to that number.
    k
        Number of hits.
    total
        Number of states in the index.

    Returns
    -------
    list of ScoredNode
        Best first, ties by node id.
    """
    limit = min(k + 1, total)
    while limit:
        hits = top_k(fetch(limit), limit)
        if limit >= total or len(hits) < limit or hits[-1].score < hits[k - 1].score:
            return hits[:k]
        limit = min(2 * limit, total)
    return []
