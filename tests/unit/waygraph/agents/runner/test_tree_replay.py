"""The tree of a search in a replay: windows, order, reasons, and a bounded size."""

import io
import json
import math

import pytest
from PIL import Image

from tests.unit.waygraph.agents.search.trees import click, grown, put, state, step, visit
from waygraph.agents.runner.task_replay import replay_of_task
from waygraph.agents.runner.trace import TREE_FILE, TraceWriter
from waygraph.agents.runner.trace_reading import read_trace
from waygraph.agents.runner.tree_replay import MAX_ACTIONS, MAX_NODES, read_tree, replay_tree, windows_of
from waygraph.agents.search.frontier import add, merge
from waygraph.agents.search.tree import BacktrackRecord, CandidateStatus, KnownState, StepRecord


@pytest.fixture
def trace(tmp_path):
    """A trace of two steps: from state 0 to 1, and from 0 to 2 after a return."""
    writer = TraceWriter(tmp_path)
    names = []
    for colour in ("red", "green", "blue"):
        image = io.BytesIO()
        Image.new("RGB", (64, 40), colour).save(image, format="JPEG")
        names.append(writer.store_screenshot(image.getvalue()))
    for result in (1, 2):
        details = {"node": 0, "result": result}
        writer.write("step", screenshot=names[0], screenshot_after=names[result], details=details)
    return read_trace(tmp_path), names


def searched():
    tree = grown()
    for number, name in enumerate(("first", "second"), 1):
        step(tree, 0, name, state(f"s{number}", f"http://a.example/{number}"))
        details = {"node": 0, "result": number, "score": 0.5, "rule": "best", "changed": []}
        tree.log.append(StepRecord(state="s0", url="", action=name, status="done", message="", details=details))
    tree.backtracks.append(BacktrackRecord(step=1, target=0, tried=["map:0", "url:0"], arrived=True))
    return tree


def test_states_have_the_windows_that_were_seen_when_they_were_visited(trace):
    shown, names = trace
    tree = searched()
    assert {number: path.stem for number, path in windows_of(tree, shown).items()} == dict(enumerate(names))
    replay = replay_tree(tree, dict(enumerate(names)))
    assert [node.screenshot for node in replay.nodes] == names
    assert [(node.number, node.parent, node.step) for node in replay.nodes] == [(0, None, 0), (1, 0, 1), (2, 0, 2)]


def test_a_step_after_a_return_begins_on_another_page_than_the_step_before_led_to(trace, tmp_path):
    _, names = trace
    (tmp_path / TREE_FILE).write_text(searched().model_dump_json())
    replay = replay_of_task(tmp_path)
    first, second = replay.steps
    assert first.after.url == "http://a.example/1"
    assert second.after.url == "http://a.example/2"
    assert first.after.screenshot != second.before.screenshot
    assert len(replay.images) == len(names)
    assert [node.screenshot for node in replay.tree.nodes] == [
        first.before.screenshot, first.after.screenshot, second.after.screenshot
    ]  # fmt: skip


def test_returns_belong_to_the_step_that_they_were_made_for(trace):
    tree = searched()
    tree.backtracks.append(BacktrackRecord(step=2, target=1, tried=["url:1"], arrived=False, problem="It is gone."))
    first, second, end = replay_tree(tree, {}).steps
    assert first.returns == []
    assert [(each.target, each.tried, each.arrived) for each in second.returns] == [(0, ["map:0", "url:0"], True)]
    assert (end.action, end.returns[0].problem) == ("", "It is gone.")
    assert (second.node, second.result, second.score, second.rule) == (0, 2, 0.5, "best")


def test_merged_dropped_and_known_states_have_reasons():
    tree = searched()
    proposals = [click("Same", context="one"), click("Same", context="two"), click("To n1", outcome="n1"), visit("n1")]
    add(tree, 0, [(each, 0.5) for each in merge(proposals)])
    put(tree, 0, click("Late"), 0.1, status=CandidateStatus.DROPPED, reason="the frontier is full")
    tree.nodes[2].same_as = 1
    tree.known["n9"] = KnownState(node_id="n9", url="http://a.example/9", title="Ninth", value=0.25, seen_from=0)
    replay = replay_tree(tree, {})
    actions = replay.nodes[0].actions
    merged = [text for action in actions for text in action.merged]
    assert any('Same" of two: the same action' in text for text in merged)
    assert any("leads to the same state" in text for text in merged)
    assert [each.reason for each in actions if each.status == "dropped"] == ["the frontier is full"]
    assert replay.nodes[2].same_as == 1
    assert [each.title for each in replay.known] == ["Ninth"]
    assert replay.counts["proposals merged"] == 2


def test_a_large_tree_is_bounded_and_keeps_the_actions_that_were_performed():
    tree = grown(depth=MAX_NODES + 50)
    for number in range(2 * MAX_ACTIONS):
        put(tree, 0, click(f"other {number}"), 0.9)
    tree.known = {
        str(number): KnownState(node_id=str(number), url="u", title="t", value=0.1, seen_from=0) for number in range(90)
    }
    replay = replay_tree(tree, {})
    assert (len(replay.nodes), replay.nodes_left_out) == (MAX_NODES, 50)
    start = replay.nodes[0]
    assert (len(start.actions), start.actions_left_out) == (MAX_ACTIONS, MAX_ACTIONS + 1)
    assert [each.result for each in start.actions if each.result is not None] == [1], "the lowest, and it was done"
    assert (len(replay.known), replay.known_total) == (40, 90)


def test_numbers_of_a_file_of_others_make_no_circle_and_no_invalid_json():
    tree = grown(depth=3)
    tree.nodes[1].parent, tree.nodes[2].parent = 2, 77
    tree.nodes[0].is_expanded, tree.nodes[0].value = True, math.nan
    put(tree, 0, click("endless"), math.inf)
    tree.log.append(
        StepRecord(state="", url="", action="a", status="", message="",
                   details={"node": "<b>", "result": 99, "score": math.nan, "changed": "no list", "rule": ["x"]})
    )  # fmt: skip
    replay = replay_tree(tree, {})
    assert [node.parent for node in replay.nodes] == [None, None, None]
    json.dumps(replay.model_dump(mode="json"), allow_nan=False)
    assert (replay.steps[-1].node, replay.steps[-1].result, replay.steps[-1].changed) == (None, None, [])


def test_a_file_that_is_no_tree_is_not_shown(tmp_path):
    assert read_tree(tmp_path / "tree.json") is None
    (tmp_path / "tree.json").write_text('{"version": 99}')
    assert read_tree(tmp_path / "tree.json") is None
    (tmp_path / "tree.json").write_text(searched().model_dump_json())
    assert read_tree(tmp_path / "tree.json") == searched()
