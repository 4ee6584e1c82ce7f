"""Is the hand-written graph of the demo shop consistent in itself?"""

import json
from collections import Counter, deque
from pathlib import Path

import pytest

from tests.ground_truth.demo_shop import DEPTH, truth, views

TRUTH = truth()


def test_every_end_of_every_edge_is_a_state():
    for edge in TRUTH.edges:
        assert edge.source in TRUTH.states
        assert edge.target in TRUTH.states


def test_stated_depths_are_the_distances_from_the_start_page():
    distance = {"home": 0}
    waiting = deque(["home"])
    while waiting:
        here = waiting.popleft()
        for edge in TRUTH.edges:
            if edge.source == here and edge.target not in distance:
                distance[edge.target] = distance[here] + 1
                waiting.append(edge.target)
    assert distance == {key: state.depth for key, state in TRUTH.states.items()}


def test_every_described_state_is_reached():
    assert set(views()) == set(TRUTH.states)


def test_there_are_at_least_forty_states():
    assert len(TRUTH.states) >= 40


def test_states_of_the_last_depth_are_not_expanded():
    assert all(TRUTH.states[edge.source].depth < DEPTH for edge in TRUTH.edges)
    assert all(TRUTH.states[skip.state].depth < DEPTH for skip in TRUTH.skips)


def test_a_parent_is_one_level_above_its_child():
    assert all(TRUTH.states[p].depth == TRUTH.states[c].depth - 1 for c, p in TRUTH.parents.items())
    assert set(TRUTH.parents) == set(TRUTH.states) - {"home"}


def test_no_two_edges_of_a_state_are_alike():
    alike = Counter((edge.source, edge.kind, edge.role, edge.name) for edge in TRUTH.edges)
    assert [edge for edge, count in alike.items() if count > 1] == []


def test_states_of_one_url_are_told_apart_by_what_they_show():
    for state in TRUTH.states.values():
        for other in TRUTH.states.values():
            if state.path == other.path and state.key != other.key:
                told = {*state.shows} & {*other.hides} or {*other.shows} & {*state.hides}
                assert told or {*state.shows} - {*other.shows}, (state.key, other.key)


def test_exactly_one_state_per_url_is_addressable():
    addressable = Counter(state.path for state in TRUTH.states.values() if state.addressable)
    assert set(addressable.values()) == {1}
    assert set(addressable) == {state.path for state in TRUTH.states.values()}


def test_blocked_edges_stay_where_they_are():
    blocked = [edge for edge in TRUTH.edges if edge.blocked]
    assert len(blocked) > 5
    assert all(edge.source == edge.target for edge in blocked)


def test_smaller_depths_give_the_beginning_of_the_same_graph():
    for depth in range(DEPTH):
        part = truth(depth)
        assert list(part.states) == list(TRUTH.states)[: len(part.states)]
        assert part.edges == TRUTH.edges[: len(part.edges)]
        assert max(state.depth for state in part.states.values()) == depth


@pytest.fixture(scope="module")
def descriptions():
    return json.loads((Path(__file__).parent.parent / "ground_truth" / "descriptions.json").read_text())


def test_thirty_descriptions_name_known_states(descriptions):
    assert len(descriptions) == 30
    assert len({entry["query"] for entry in descriptions}) == 30
    for entry in descriptions:
        assert entry["target"], entry
        assert set(entry["target"]) <= set(TRUTH.states), entry


def test_descriptions_cover_all_areas_and_states_that_only_a_click_opens(descriptions):
    targets = [entry["target"][0] for entry in descriptions]
    for area in ("account", "help", "admin", "p/", "home"):
        assert any(target.startswith(area) for target in targets), area
    assert sum("+" in target for target in targets) >= 8


def test_descriptions_do_not_repeat_the_title_of_their_page(descriptions):
    for entry in descriptions:
        for target in entry["target"]:
            title = TRUTH.states[target].title.partition(" · ")[0].lower()
            assert title not in entry["query"].lower(), entry
