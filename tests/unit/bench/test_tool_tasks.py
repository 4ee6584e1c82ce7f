"""Tasks that are one call of a tool: the table, and when a task is done."""

import pytest

from bench.retrieval.maps import SITES
from bench.tool_tasks import Done, Task, read_tasks, summary
from waygraph.core.schemas import ToolModel
from waygraph.index.graph import Box, Observation, Segment

TASKS = read_tasks()
PAGE = Observation("", "http://127.0.0.1:1/find?q=tea", "Found", (Segment("2 found", "text", Box(0, 0, 1, 1)),))


def test_there_are_30_tasks_on_sites_of_the_benchmark_each_with_one_expectation():
    assert len(TASKS) == len({(task.site, task.ask) for task in TASKS}) == 30
    assert {task.site for task in TASKS} <= set(SITES)
    assert all(bool(task.shows) != (task.answer is not None) for task in TASKS)
    assert all(task.shows.startswith("/") for task in TASKS if task.shows)


@pytest.mark.parametrize(
    ("tool", "is_named"), [("find", True), ("find at /find", True), ("find at /other", False), ("look", False)]
)
def test_a_tool_is_named_by_its_name_or_with_the_path_of_its_form(tool, is_named):
    model = ToolModel(
        id="1" * 16,
        name="find",
        title="",
        description="",
        input_schema={},
        source="inferred",
        states=["a"],
        state_count=1,
        url="http://127.0.0.1:1/",
        origin="http://127.0.0.1:1",
        target="http://127.0.0.1:1/find",
        method="GET",
        read_only=True,
    )
    assert Task("shop", "?", tool, {}).is_named(model) == is_named


@pytest.mark.parametrize(
    ("expected", "answer", "is_done"),
    [
        ({"shows": "/find?q=tea + 2 found"}, None, True),
        ({"shows": "/find?q=tea + 3 found"}, None, False),
        ({"shows": "/find?q=pot"}, None, False),
        ({"answer": {"price": 2}}, {"price": 2}, True),
        ({"answer": {"price": 2}}, None, False),
    ],
)
def test_a_task_is_done_by_the_page_in_the_end_or_by_the_answer(expected, answer, is_done):
    assert Task("shop", "?", "find", {}, **expected).is_done(PAGE, answer) == is_done


def test_the_summary_has_the_share_done_and_the_actions_of_what_is_done_by_way():
    rows = [
        vars(Done("a", "given", "find", is_named_tool=True, done=True, actions=1)),
        vars(Done("b", "given", "find", is_named_tool=True, done=True, actions=2)),
        vars(Done("a", "found", "find", is_named_tool=True, done=True, actions=3)),
        vars(Done("b", "found", "look", is_named_tool=False, done=False, actions=9)),
    ]
    assert summary(rows) == {
        "given": {"tasks": 2, "done": 1.0, "the named tool": 2, "median actions": 1.5, "actions": {"1": 1, "2": 1}},
        "found": {"tasks": 2, "done": 0.5, "the named tool": 1, "median actions": 3, "actions": {"3": 1}},
    }
