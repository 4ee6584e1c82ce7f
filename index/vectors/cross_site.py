"""Search across many maps: every state is scored exactly while that is cheap, else in two stages.

The first stage compares a few pooled rows of every state (`waygraph.index.vectors.pooling`), map by map; the second
stage scores the best candidates of all maps from all of their rows. If all maps are in one collection of a server, the
server runs both stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from waygraph.index.vectors.options import POOLED_ROWS
from waygraph.index.vectors.pooling import pool_windows
from waygraph.index.vectors.protocol import MapKey, ScoredNode, VectorIndex
from waygraph.index.vectors.validation import top_k, top_k_from_engine, validate_k, validate_query

if TYPE_CHECKING:
    from waygraph.index.vectors.packed import PackedRows

#: Number of values (rows x dim) of all maps together up to which every state is scored; see bench/search.md.
EXACT_SEARCH_MAX_VALUES = 20_000_000
#: Minimum number of states, of all maps together, that the first stage passes on to exact scoring; see bench/search.md.
CROSS_SITE_CANDIDATES = 128

StateVectors = Mapping[str, NDArray[np.float16]]


@runtime_checkable
class SharedCollectionIndex(Protocol):
    """An index in a collection that holds other maps too, and that can search several of them at once."""

    @property
    def key(self) -> MapKey:
        """Key of this map in the collection."""
        ...

    def search_maps(
        self, query: NDArray[np.float32], k: int, keys: list[MapKey], *, two_stages: bool
    ) -> list[tuple[str, str, float]]:
        """Return the top k of these maps as (site, node id, score), best first; equal scores in any order."""
        ...


class SearchableMap(Protocol):
    """A map that can be searched together with others."""

    @property
    def index(self) -> VectorIndex:
        """Index of this map alone."""
        ...

    @property
    def vectors(self) -> StateVectors:
        """All rows of every state."""
        ...

    @property
    def values(self) -> int:
        """Number of values in `vectors`."""
        ...

    @property
    def first_stage(self) -> PackedRows:
        """Pooled rows of all states, see `pack_first_stage`; computed once."""
        ...


def count_values(vectors: StateVectors) -> int:
    """Return rows x dim of all states together."""
    return sum(rows.size for rows in vectors.values())


def pack_first_stage(vectors: StateVectors) -> PackedRows:
    """Pool and pack the rows of a map's states; takes about a second for 10,000 states of 746 rows."""
    from waygraph.index.vectors.packed import PackedRows, fastest_dtype  # noqa: PLC0415 - imports torch

    return PackedRows({node_id: pool_windows(rows, POOLED_ROWS) for node_id, rows in vectors.items()}, fastest_dtype())


def search_across_maps(
    maps: Mapping[str, SearchableMap],
    query: NDArray[np.float32],
    k: int,
    *,
    candidates: int = CROSS_SITE_CANDIDATES,
    exact_up_to: int = EXACT_SEARCH_MAX_VALUES,
) -> list[tuple[str, ScoredNode]]:
    """Find the k best states of several maps.

    Parameters
    ----------
    maps
        Maps by site; their states must have been encoded by the query's encoder.
    query
        float32 of shape (m, dim).
    k
        Number of hits.
    candidates
        Number of states that get to the second stage; at least k do.
    exact_up_to
        Number of values up to which there is one stage.

    Returns
    -------
    list of tuple of str and ScoredNode
        Pairs of site and hit, best first, ties by site and node id.

    Raises
    ------
    InvalidInput
        If the query is not a finite matrix of the maps' dim, or k < 1.
    """
    limit = validate_k(k)
    filled = {site: each for site, each in maps.items() if each.vectors}
    if not filled:
        return []
    vectors_of_one = next(iter(filled.values())).vectors
    rows = validate_query(query, next(iter(vectors_of_one.values())).shape[1])
    two_stages = sum(each.values for each in filled.values()) > exact_up_to
    indexes = [each.index for each in filled.values()]
    shared = [index for index in indexes if isinstance(index, SharedCollectionIndex)]
    if len(shared) == len(indexes) > 1:
        return _search_collection(shared, rows, limit, sum(len(each.vectors) for each in filled.values()), two_stages)
    if not two_stages or not _has_torch():
        hits = [(site, hit) for site, each in filled.items() for hit in each.index.search(rows, limit)]
        hits.sort(key=lambda pair: (-pair[1].score, pair[0], pair[1].node_id))
        return hits[:limit]
    return _rescore(filled, rows, _first_stage(filled, rows, max(candidates, limit)), limit)


def _has_torch() -> bool:
    """Return whether the first stage can be computed. Without torch the indexes of all maps are searched."""
    return find_spec("torch") is not None


def _search_collection(
    shared: Sequence[SharedCollectionIndex], query: NDArray[np.float32], k: int, states: int, two_stages: bool
) -> list[tuple[str, ScoredNode]]:
    keys = [index.key for index in shared]

    def fetch(count: int) -> list[tuple[str, float]]:
        hits = shared[0].search_maps(query, count, keys, two_stages=two_stages)
        return [(_joined_name(site, node), score) for site, node, score in hits]

    return _split_names(top_k_from_engine(fetch, k, states))


def _first_stage(maps: Mapping[str, SearchableMap], query: NDArray[np.float32], most: int) -> list[tuple[str, str]]:
    """Return the candidates for the second stage as (site, node id)."""
    from waygraph.index.vectors.packed import approximate_scores  # noqa: PLC0415 - imports torch

    stages = [each.first_stage for each in maps.values()]
    scores = approximate_scores(stages, query)
    best = np.argpartition(-scores, most - 1)[:most] if len(scores) > most else np.arange(len(scores))
    sites, starts = list(maps), np.cumsum([0, *(len(stage.ids) for stage in stages)])
    owners = np.searchsorted(starts, best, side="right") - 1
    return [(sites[i], stages[i].ids[at - starts[i]]) for i, at in zip(owners.tolist(), best.tolist(), strict=True)]


def _rescore(
    maps: Mapping[str, SearchableMap], query: NDArray[np.float32], chosen: list[tuple[str, str]], k: int
) -> list[tuple[str, ScoredNode]]:
    from waygraph.index.vectors.packed import maxsim_scores  # noqa: PLC0415 - imports torch

    scores = maxsim_scores(query, [maps[site].vectors[node_id] for site, node_id in chosen])
    named = ((_joined_name(*pair), score) for pair, score in zip(chosen, scores.tolist(), strict=True))
    return _split_names(top_k(named, k))


def _joined_name(site: str, node_id: str) -> str:
    # A blank is in no site key and sorts before all characters that are, so names sort as the pairs do.
    return f"{site} {node_id}"


def _split_names(hits: list[ScoredNode]) -> list[tuple[str, ScoredNode]]:
    return [(site, ScoredNode(node, hit.score)) for hit in hits for site, _, node in [hit.node_id.partition(" ")]]
