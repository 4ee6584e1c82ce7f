"""The benchmark of the tree search: which states are drawn for returns, and what is counted of them."""

from argparse import Namespace

from bench.search_tree.__main__ import Rows, chosen_questions, is_done
from bench.search_tree.returns import Return, ReturnRow, drawn_from
from bench.search_tree.summary import return_summary, task_summary
from bench.search_tree.tasks import AGENTS, Outcome, TaskRow
from tests.unit.waygraph.agents.search.trees import grown, state, step


def test_states_are_drawn_that_a_search_would_return_to_and_the_others_are_counted():
    tree = grown(depth=3)
    saved = step(tree, 2, "Save", state("saved", "http://a.example/saved"), changed=["POST http://a.example/"])
    tree.root = saved.id
    after = step(tree, saved.id, "Next", state("after", "http://a.example/after"))
    lost = step(tree, after.id, "Send", state("lost", "http://a.example/after"), is_destructive=True)
    step(tree, after.id, "Broken", state("broken", "http://a.example/broken")).problem = "The server answered with 500."
    row, drawn = drawn_from(tree, 5)
    assert [each.id for each in drawn] == [saved.id, after.id]
    assert (row.nodes, row.before_change, row.without_way) == (5, 2, 1)
    assert row.changes == ["POST http://a.example/"]
    assert lost not in drawn


def returned(*, arrived, loads=1, seconds=1.0):
    return Return(arrived, ["url:1"], loads, seconds)


def test_returns_are_compared_in_pairs_and_those_in_new_contexts_apart():
    yes, no = returned(arrived=True), returned(arrived=False, loads=3, seconds=2.0)
    rows = [
        ReturnRow(5, 1, False, True, yes, no, fresh_with_map=yes, fresh_urls_alone=yes),
        ReturnRow(5, 1, False, True, yes, yes),
        ReturnRow(6, 1, True, True, yes, yes),
    ]
    found = return_summary([rows, rows[:1]], [])
    assert (found["returns"], found["states"]) == (4, 3)
    assert (found["all"]["with_map"]["arrived"], found["all"]["urls_alone"]["arrived"]) == (4, 2)
    assert found["all"]["map_minus_urls_mean_loads"] == -1
    assert found["without_address"]["returns"] == 3
    assert (found["in_a_new_context"]["returns"], found["in_a_new_context"]["urls_alone"]["arrived"]) == (2, 2)


def test_a_site_is_done_when_all_its_tasks_and_returns_are_in_the_rows(tmp_path):
    options = Namespace(tasks=1, returns=1)
    (question,) = chosen_questions("shop", 1)
    rows = Rows(tmp_path / "shop.jsonl")
    rows.add({"task": {"ask": question.ask}})
    assert not is_done("shop", rows, options)
    rows.add({"return": {}})
    assert is_done("shop", Rows(tmp_path / "shop.jsonl"), options)
    assert not is_done("shop", rows, Namespace(tasks=2, returns=1))


def test_failures_are_counted_by_what_the_map_knew_of_the_target():
    def row(rank, *, success):
        outcome = Outcome(success, steps=1, loads=1, seconds=1.0, end="answered", url="/")
        return TaskRow("where", dict.fromkeys(AGENTS, outcome), rank)

    failed = [row(rank, success=False) for rank in (3, 0, None)]
    found = task_summary([row(0, success=True), *failed])
    assert found["failures_with_lookahead"] == {
        "target_first_in_the_map_search": 0,
        "target_lower": 1,
        "target_not_found_by_the_map_search": 1,
        "not_noted": 1,
    }
