"""Which states of many maps answer a question best? All of them are scored while that is cheap, else in two stages.

The first stage compares a few pooled rows of every state (`index.vectors.pooling`), map by map; the second one scores
the best candidates of all maps from all of their rows. Where all maps are in one collection of a server, it does both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from index.vectors.checks import checked_k, checked_query, ranked, ranked_from
from index.vectors.options import POOLED_ROWS
from index.vectors.pooling import pooled
from index.vectors.protocol import MapKey, ScoredNode, VectorIndex

if TYPE_CHECKING:
    from index.vectors.packed import PackedRows

#: Values (rows x dim) of all maps together up to which every state is scored; see docs/search.md.
EXACT_UP_TO_VALUES = 20_000_000
#: States of all maps together that get to the second stage, at least; see docs/search.md.
CANDIDATES = 128

Vectors = Mapping[str, NDArray[np.float16]]


@runtime_checkable
class InOneCollection(Protocol):
    """An index whose engine holds other maps too, and searches several of them at once."""

    @property
    def key(self) -> MapKey:
        """Which map it is of those in the collection."""
        ...

    def search_maps(
        self, query: NDArray[np.float32], k: int, keys: list[MapKey], *, two_stages: bool
    ) -> list[tuple[str, str, float]]:
        """The k best of these maps as (site, node id, score), best first; equal scores in any order."""
        ...


class SearchableMap(Protocol):
    """What a search across maps needs of each."""

    @property
    def index(self) -> VectorIndex:
        """Searches this map alone, exactly."""
        ...

    @property
    def vectors(self) -> Vectors:
        """All rows of every state."""
        ...

    @property
    def values(self) -> int:
        """How many numbers `vectors` are."""
        ...

    @property
    def first_stage(self) -> PackedRows:
        """See `first_stage_of`; made once."""
        ...


def values_of(vectors: Vectors) -> int:
    """Rows x dim of all states together."""
    return sum(rows.size for rows in vectors.values())


def first_stage_of(vectors: Vectors) -> PackedRows:
    """The pooled rows of a map's states, packed; about a second for 10,000 states of 746 rows."""
    from index.vectors.packed import PackedRows, fastest_dtype  # noqa: PLC0415 - imports torch

    return PackedRows({node_id: pooled(rows, POOLED_ROWS) for node_id, rows in vectors.items()}, fastest_dtype())


def search_across(
    maps: Mapping[str, SearchableMap],
    query: NDArray[np.float32],
    k: int,
    *,
    candidates: int = CANDIDATES,
    exact_up_to: int = EXACT_UP_TO_VALUES,
) -> list[tuple[str, ScoredNode]]:
    """The k best states of some maps as (map, hit), best first, ties by map and node id.

    Parameters
    ----------
    maps : by site; their states must have been encoded by the query's encoder.
    query : float32 of shape (m, dim).
    candidates : states that get to the second stage, at least k.
    exact_up_to : values up to which there is one stage.

    Raises
    ------
    InvalidInput
        When the query is not a finite matrix of the maps' dim, or k < 1.

    """
    limit = checked_k(k)
    filled = {site: each for site, each in maps.items() if each.vectors}
    if not filled:
        return []
    one = next(iter(filled.values())).vectors
    rows = checked_query(query, next(iter(one.values())).shape[1])
    two_stages = sum(each.values for each in filled.values()) > exact_up_to
    indexes = [each.index for each in filled.values()]
    shared = [index for index in indexes if isinstance(index, InOneCollection)]
    if len(shared) == len(indexes) > 1:
        return _on_server(shared, rows, limit, sum(len(each.vectors) for each in filled.values()), two_stages)
    if not two_stages:
        found = [(site, hit) for site, each in filled.items() for hit in each.index.search(rows, limit)]
        found.sort(key=lambda pair: (-pair[1].score, pair[0], pair[1].node_id))
        return found[:limit]
    return _rescored(filled, rows, _candidates(filled, rows, max(candidates, limit)), limit)


def _on_server(
    shared: Sequence[InOneCollection], query: NDArray[np.float32], k: int, states: int, two_stages: bool
) -> list[tuple[str, ScoredNode]]:
    keys = [index.key for index in shared]

    def fetch(count: int) -> list[tuple[str, float]]:
        hits = shared[0].search_maps(query, count, keys, two_stages=two_stages)
        return [(_name(site, node), score) for site, node, score in hits]

    return _split(ranked_from(fetch, k, states))


def _candidates(maps: Mapping[str, SearchableMap], query: NDArray[np.float32], most: int) -> list[tuple[str, str]]:
    from index.vectors.packed import approximate_scores  # noqa: PLC0415 - imports torch

    stages = [each.first_stage for each in maps.values()]
    scores = approximate_scores(stages, query)
    best = np.argpartition(-scores, most - 1)[:most] if len(scores) > most else np.arange(len(scores))
    sites, starts = list(maps), np.cumsum([0, *(len(stage.ids) for stage in stages)])
    which = np.searchsorted(starts, best, side="right") - 1
    return [(sites[i], stages[i].ids[at - starts[i]]) for i, at in zip(which.tolist(), best.tolist(), strict=True)]


def _rescored(
    maps: Mapping[str, SearchableMap], query: NDArray[np.float32], chosen: list[tuple[str, str]], k: int
) -> list[tuple[str, ScoredNode]]:
    from index.vectors.packed import scored  # noqa: PLC0415 - imports torch

    scores = scored(query, [maps[site].vectors[node_id] for site, node_id in chosen])
    return _split(ranked(((_name(*pair), score) for pair, score in zip(chosen, scores.tolist(), strict=True)), k))


def _name(site: str, node_id: str) -> str:
    # A blank is in no site key and before all that are, so that names are ordered as pairs are.
    return f"{site} {node_id}"


def _split(hits: list[ScoredNode]) -> list[tuple[str, ScoredNode]]:
    return [(site, ScoredNode(node, hit.score)) for hit in hits for site, _, node in [hit.node_id.partition(" ")]]
