"""The tree of a search in a report: windows, order, reasons, and texts that stay texts."""

import io
import re

import pytest
from PIL import Image

from tests.unit.waygraph.agents.search.trees import click, grown, put, state, step, visit
from waygraph.agents.run_report.tree_view import read_tree, tree_view, windows_of
from waygraph.agents.runner.trace import TraceWriter
from waygraph.agents.runner.trace_reading import read_trace
from waygraph.agents.search.frontier import add, merge
from waygraph.agents.search.tree import BacktrackRecord, CandidateStatus, KnownState, StepRecord

HOSTILE = "<script>alert(1)</script>\"'&<img src=x>"


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
    step(tree, 0, "first", state("s1", "http://a.example/1"))
    tree.log.append(StepRecord(state="s0", url="", action="first", status="done", message="", details={"node": 0}))
    step(tree, 0, "second", state("s2", "http://a.example/2"))
    tree.backtracks.append(BacktrackRecord(step=1, target=0, tried=["map:0", "url:0"], arrived=True))
    tree.log.append(StepRecord(state="s0", url="", action="second", status="done", message="", details={"node": 0}))
    return tree


def test_states_have_the_windows_that_were_seen_when_they_were_visited(trace):
    shown, names = trace
    tree = searched()
    assert windows_of(tree, shown) == dict(enumerate(names))
    page = tree_view(tree, shown)
    assert page.count("data:image/jpeg") == 3
    assert re.findall(r'id="state-(\d)"', page) == ["0", "1", "2"]


def test_the_order_names_returns_before_the_step_that_they_were_made_for(trace):
    page = tree_view(searched(), trace[0])
    first, second = re.findall(r"<tr><td class=\"number\">\d.*?</tr>", page)
    assert "returned" not in first
    assert "to 0 over map:0, then url:0" in second
    assert "to 0" not in first


def test_merged_dropped_and_known_states_are_shown_with_reasons(trace):
    tree = searched()
    proposals = [click("Same", context="one"), click("Same", context="two"), click("To n1", outcome="n1"), visit("n1")]
    add(tree, 0, [(each, 0.5) for each in merge(proposals)])
    put(tree, 0, click("Late"), 0.1, status=CandidateStatus.DROPPED, reason="the frontier is full")
    tree.nodes[2].same_as = 1
    tree.known["n9"] = KnownState(node_id="n9", url="http://a.example/9", title="Ninth", value=0.25, seen_from=0)
    page = tree_view(tree, trace[0])
    for text in ("Same&quot; of two: the same action", "leads to the same state", "the frontier is full",
                 "merged: shows the same elements and texts as state 1", "Ninth", "Known and not visited"):  # fmt: skip
        assert text in page, text


def test_texts_of_sites_and_models_are_texts(trace):
    tree = searched()
    tree.nodes[1].state.title = tree.nodes[1].state.address = tree.nodes[1].problem = HOSTILE
    tree.log[0].action = HOSTILE
    tree.log[0].details = {"node": HOSTILE, "rule": HOSTILE, "changed": [HOSTILE], "result": HOSTILE}
    tree.known["n"] = KnownState(node_id="n", url=HOSTILE, title=HOSTILE, value=0.1, seen_from=0)
    put(tree, 0, click(HOSTILE, context=HOSTILE), 0.5, reason=HOSTILE, merged=[HOSTILE])
    page = tree_view(tree, trace[0])
    assert "<script" not in page
    assert "<img src=x" not in page
    assert page.count("&lt;script&gt;") >= 10


def test_a_deep_tree_and_one_whose_parents_are_wrong_are_drawn(trace):
    deep = grown(depth=1_500)
    assert tree_view(deep, trace[0]).count("<article") == 1_500
    looping = grown(depth=3)
    looping.nodes[1].parent, looping.nodes[2].parent = 2, 77
    assert tree_view(looping, trace[0]).count("<article") == 3


def test_a_file_that_is_no_tree_is_not_shown(tmp_path):
    assert read_tree(tmp_path / "tree.json") is None
    (tmp_path / "tree.json").write_text('{"version": 99}')
    assert read_tree(tmp_path / "tree.json") is None
    (tmp_path / "tree.json").write_text(searched().model_dump_json())
    assert read_tree(tmp_path / "tree.json") == searched()
