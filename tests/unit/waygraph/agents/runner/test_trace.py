"""A trace is readable line by line, and equal observations are stored once."""

import json
from types import SimpleNamespace

from waygraph.agents.run_record import AgentStep
from waygraph.agents.runner.trace import TraceWriter


def step(action, **values):
    return AgentStep(state="s", url="http://a.example/", action=action, status="done", message="Clicked.", **values)


async def test_steps_refer_to_the_texts_that_they_were_decided_on(tmp_path):
    trace = TraceWriter(tmp_path)
    trace.write("start", task="7")
    await trace.write_step(step("click [1]", details={"score": 0.5}), SimpleNamespace(text="one \ud83d"))
    await trace.write_step(step("click [2]"), SimpleNamespace(text="one \ud83d"))
    await trace.write_step(step("click [3]"), SimpleNamespace(text="two"))
    lines = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text("utf-8").splitlines()]
    assert [line["kind"] for line in lines] == ["start", "step", "step", "step"]
    assert lines[1]["details"] == {"score": 0.5}
    texts = [(tmp_path / "observations" / f"{line['observation']}.txt").read_text("utf-8") for line in lines[1:]]
    assert texts == ["one \ufffd", "one \ufffd", "two"]
    assert len(list((tmp_path / "observations").iterdir())) == 2
    assert trace.steps == 3


def test_another_attempt_begins_a_new_trace(tmp_path):
    TraceWriter(tmp_path).write("start", task="7")
    TraceWriter(tmp_path)
    assert (tmp_path / "trace.jsonl").read_text() == ""


async def test_equal_screenshots_are_one_file_that_steps_name(tmp_path):
    trace = TraceWriter(tmp_path)
    names = [trace.store_screenshot(image) for image in (b"first", b"second", b"first")]
    assert names[0] == names[2] != names[1]
    await trace.write_step(step("click [1]"), SimpleNamespace(text="one"), names[1])
    (line,) = (tmp_path / "trace.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["screenshot"] == names[1]
    files = {path.name: path.read_bytes() for path in (tmp_path / "screenshots").iterdir()}
    assert files == {f"{names[0]}.jpg": b"first", f"{names[1]}.jpg": b"second"}
