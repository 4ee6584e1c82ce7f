"""Does what a level becomes depend only on its items, whatever order they are finished in?"""

from hypothesis import given
from hypothesis import strategies as st

from index.graph import Action, Edge
from pipeline.explore.level import Item, Level
from pipeline.explore.ways import Ways
from pipeline.explore.worker import Outcome
from tests.unit.test_explore_policies import candidate, snapshot


def items_of(groups):
    states = [snapshot() for _ in groups]
    states = [type(s)(str(i), *[getattr(s, n) for n in list(s.__slots__)[1:]]) for i, s in enumerate(states)]
    flat = [state for state, count in zip(states, groups, strict=True) for _ in range(count)]
    return [Item(i, state, candidate(str(i))) for i, state in enumerate(flat)]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 20), st.randoms(), st.integers(1, 4))
def test_commits_are_a_prefix_of_the_canonical_order_cut_at_the_cap(groups, cap, chance, workers):
    items = items_of(groups)
    committed = []

    def commit(item, outcome):
        if len(committed) >= cap:
            return False
        committed.append(item.index)
        return True

    level = Level(items, commit)
    running, near = [], [None] * workers
    while True:
        for worker in range(workers):
            if (item := level.take(near[worker])) is not None:
                near[worker] = item.state.id
                running.append(item)
        if not running:
            break
        level.done(running.pop(chance.randrange(len(running))), Outcome(None))
    assert committed == [item.index for item in items][:cap]


def test_a_worker_stays_with_the_state_that_its_browser_shows():
    items = items_of([2, 2])
    level = Level(items, lambda *_: True)
    first, second = level.take(None), level.take(None)
    assert (first.state.id, second.state.id) == ("0", "1")
    assert level.take("1").state.id == "1"
    assert level.take("0").state.id == "0"
    assert level.take("0") is None


def test_a_stopped_level_commits_what_is_done_and_gives_out_nothing_more():
    items = items_of([3])
    committed = []
    level = Level(items, lambda item, _: committed.append(item.index) is None)
    taken = [level.take(None) for _ in range(3)]
    level.done(taken[2], Outcome(None))
    level.stop()
    level.done(taken[0], Outcome(None))
    assert committed == [2]
    assert level.take(None) is None


URLS = {name: f"http://x/{name}" for name in "abcd"}


def edge(source, target, **details):
    return Edge(source, target, Action("click", name=f"{source}{target}"), **details)


def test_the_way_to_a_state_is_a_goto_to_the_nearest_addressable_one_and_the_fewest_actions():
    ways = Ways({"a": URLS["a"], "c": URLS["c"]}, [edge("a", "b"), edge("b", "d"), edge("c", "d")])
    assert [str(step.action) for step in ways.to("d", URLS)] == ["goto http://x/c", 'click  "cd"']
    assert [step.expected_node_id for step in ways.to("d", URLS)] == ["c", "d"]
    assert [str(step.action) for step in ways.to("a", URLS)] == ["goto http://x/a"]


def test_ways_never_use_edges_that_open_tabs():
    ways = Ways({"a": URLS["a"]}, [edge("a", "b", opens_tab=True)])
    assert ways.to("b", URLS) is None
