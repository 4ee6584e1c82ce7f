import sys
from functools import cached_property

import numpy as np
import pytest

from waygraph.core.errors import InvalidInput
from waygraph.index.vectors import ExactIndex, maxsim
from waygraph.index.vectors.cross_site import count_values, pack_first_stage, search_across_maps
from waygraph.index.vectors.validation import top_k

DIM = 32


class OneMap:
    """A map that counts how it is searched."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.index = ExactIndex(DIM)
        self.index.add(vectors.items())
        self.values = count_values(vectors)
        self.prepared = 0

    @cached_property
    def first_stage(self):
        self.prepared += 1
        return pack_first_stage(self.vectors)


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=-1, keepdims=True)


@pytest.fixture
def maps():
    """Three sites of near-duplicates, each with pages of several lengths."""
    rng = np.random.default_rng(1)
    made = {}
    for site in ("c.example", "a.example", "b.example:8080"):
        base = rng.normal(size=(60, DIM))
        pages = {}
        for number in range(60):
            rows = base[: 40 + number % 20] + 0.3 * rng.normal(size=(40 + number % 20, DIM))
            pages[f"n{number:02}"] = unit(rows).astype(np.float16)
        made[site] = OneMap(pages)
    return made


def query_for(maps, site, node, rows=8):
    rng = np.random.default_rng(2)
    wanted = maps[site].vectors[node][::5][:rows].astype(np.float32)
    return unit(wanted + 0.1 * rng.normal(size=wanted.shape)).astype(np.float32)


def exact(maps, query, k):
    everything = {f"{site} {n}": maxsim(query, p) for site, each in maps.items() for n, p in each.vectors.items()}
    return [tuple(hit.node_id.split(" ")) for hit in top_k(everything.items(), k)]


def found(maps, query, k, **more):
    return [(site, hit.node_id) for site, hit in search_across_maps(maps, query, k, **more)]


@pytest.mark.parametrize(("site", "node"), [("a.example", "n03"), ("b.example:8080", "n59")])
def test_one_and_two_stages_find_what_exact_scoring_finds(maps, site, node):
    query = query_for(maps, site, node)
    assert found(maps, query, 10) == exact(maps, query, 10)
    assert [each.prepared for each in maps.values()] == [0, 0, 0]
    assert found(maps, query, 10, exact_up_to=0, candidates=60) == exact(maps, query, 10)
    assert found(maps, query, 1, exact_up_to=0, candidates=60) == [(site, node)]
    assert [each.prepared for each in maps.values()] == [1, 1, 1]


def test_scores_of_two_stages_are_those_of_all_rows(maps):
    query = query_for(maps, "a.example", "n03")
    for site, hit in search_across_maps(maps, query, 5, exact_up_to=0):
        assert hit.score == pytest.approx(maxsim(query, maps[site].vectors[hit.node_id]), abs=1e-5)


@pytest.mark.parametrize("exact_up_to", [0, 10**9])
def test_equal_scores_are_ordered_by_site_and_state(exact_up_to):
    page = unit(np.random.default_rng(3).normal(size=(4, DIM))).astype(np.float16)
    maps = {site: OneMap({"n2": page, "n1": page}) for site in ("b.example", "a.example", "a.example:80")}
    assert found(maps, page.astype(np.float32), 5, exact_up_to=exact_up_to) == [
        ("a.example", "n1"),
        ("a.example", "n2"),
        ("a.example:80", "n1"),
        ("a.example:80", "n2"),
        ("b.example", "n1"),
    ]


@pytest.mark.parametrize("exact_up_to", [0, 10**9])
def test_maps_without_vectors_and_no_maps_have_no_hits(maps, exact_up_to):
    query = query_for(maps, "a.example", "n03")
    assert found({}, query, 3, exact_up_to=exact_up_to) == []
    assert found({"empty.example": OneMap({})}, query, 3, exact_up_to=exact_up_to) == []
    with_empty = maps | {"empty.example": OneMap({})}
    assert found(with_empty, query, 3, exact_up_to=exact_up_to) == exact(maps, query, 3)


def test_more_hits_than_candidates_may_be_requested(maps):
    query = query_for(maps, "a.example", "n03")
    assert len(found(maps, query, 100, exact_up_to=0, candidates=10)) == 100
    assert len(found(maps, query, 1_000, exact_up_to=0, candidates=10)) == 180


@pytest.mark.parametrize("exact_up_to", [0, 10**9])
@pytest.mark.parametrize("query", [np.ones((1, DIM + 1)), np.full((1, DIM), np.nan)])
def test_invalid_queries_are_refused(maps, query, exact_up_to):
    with pytest.raises(InvalidInput):
        search_across_maps(maps, query, 1, exact_up_to=exact_up_to)
    with pytest.raises(InvalidInput):
        search_across_maps(maps, np.ones((1, DIM)), 0, exact_up_to=exact_up_to)


def test_without_torch_the_indexes_of_all_maps_are_searched(maps, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    query = query_for(maps, "a.example", "n03")
    assert found(maps, query, 10, exact_up_to=0) == exact(maps, query, 10)
    assert [each.prepared for each in maps.values()] == [0, 0, 0]
