"""The result of a level depends on its items only, not on the order in which workers finish them."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pipeline.explore.policies.test_policies import candidate
from waygraph.index.graph import Action, Edge
from waygraph.pipeline.explore.engine.round import CHUNK, Round, WorkItem
from waygraph.pipeline.explore.engine.routes import Routes
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import State


def items_of(groups):
    states = [str(i) for i, count in enumerate(groups) for _ in range(count)]
    return [WorkItem(i, state, candidate(str(i))) for i, state in enumerate(states)]


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=5),
    st.integers(0, 60),
    st.randoms(),
    st.integers(1, 4),
    st.sets(st.integers(0, 60)),
)
def test_commits_are_a_prefix_of_the_canonical_order_cut_at_the_cap(groups, cap, chance, workers, done):
    items = items_of(groups)
    done &= {item.index for item in items}
    committed = []

    def commit(item, outcome):
        if len(committed) >= cap:
            return False
        committed.append(item.index)
        return True

    level = Round(items, commit, done=done)
    for index in sorted(done, key=lambda _: chance.random()):
        level.done(items[index], ActionOutcome())
    running = [list(level.take()) for _ in range(workers)]
    while any(running):
        worker = chance.choice([w for w in range(workers) if running[w]])
        level.done(running[worker].pop(0), ActionOutcome())
        if not running[worker]:
            running[worker] = list(level.take())
    assert committed == [item.index for item in items][:cap]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.sets(st.integers(0, 60)))
def test_chunks_hold_items_of_one_state_and_are_cut_alike_in_a_resumed_level(groups, done):
    items = items_of(groups)

    def chunks(**left):
        level, taken = Round(items, lambda *_: True, **left), []
        while chunk := level.take():
            taken.append(chunk)
        return taken

    whole = chunks()
    assert [item for chunk in whole for item in chunk] == items
    assert all(len(chunk) <= CHUNK and len({item.state_id for item in chunk}) == 1 for chunk in whole)
    cut = [tuple(item for item in chunk if item.index not in done) for chunk in whole]
    assert chunks(done=done) == [chunk for chunk in cut if chunk]


def test_stopped_level_commits_finished_items_and_hands_out_no_more():
    items = items_of([3, 1])
    committed = []
    level = Round(items, lambda item, _: committed.append(item.index) is None)
    taken = level.take()
    level.done(taken[2], ActionOutcome())
    assert level.stop() == [items[0], items[1], items[3]]  # those that were not performed
    level.done(taken[0], ActionOutcome())
    assert committed == [2]
    assert level.take() == ()


def test_a_level_that_was_closed_at_a_cap_stays_closed_in_a_resumed_run():
    items = items_of([3])
    committed = []
    level = Round(items, lambda item, _: committed.append(item.index) is None, committed=1, done={1}, closed=True)
    level.done(items[1], ActionOutcome())
    assert (committed, level.take(), level.pending) == ([], (), 0)


STATES = {name: State(name, f"http://x/{name}", name, "", 0) for name in "abcd"}


def edge(source, target, **details):
    return Edge(source, target, Action("click", name=f"{source}{target}"), **details)


def test_route_to_a_state_is_a_goto_and_the_fewest_actions():
    ways = Routes(STATES, "ac", [edge("a", "b"), edge("b", "d"), edge("c", "d")])
    assert [str(step.action) for step in ways.to("d")] == ["goto http://x/c", 'click  "cd"']
    assert [step.expected_node_id for step in ways.to("d")] == ["c", "d"]
    assert [str(step.action) for step in ways.to("a")] == ["goto http://x/a"]


def test_route_begins_with_the_address_as_the_site_writes_it():
    states = {"a": State("a", "http://x/?wsdl=", "", "", 0, address="http://x/?wsdl")}
    (step,) = Routes(states, "a", []).to("a")
    assert (step.action.url, step.expected_url) == ("http://x/?wsdl", "http://x/?wsdl=")


def test_routes_never_use_edges_that_open_tabs():
    ways = Routes(STATES, "a", [edge("a", "b", opens_tab=True)])
    assert ways.to("b") is None


def test_worker_whose_page_shows_a_state_gets_the_next_chunk_of_that_state():
    level = Round(items_of([1, CHUNK + 1, 1]), lambda *_: True)
    states = [chunk[0].state_id for chunk in (level.take("1"), level.take("1"), level.take("1"), level.take("1"))]
    assert states == ["1", "1", "0", "2"]
