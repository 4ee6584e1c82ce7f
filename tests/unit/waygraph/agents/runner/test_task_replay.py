"""The trace of a task becomes one file with everything that the agent saw."""

import base64
import json
from types import SimpleNamespace

import pytest

from waygraph.agents.run_record import AgentStep
from waygraph.agents.runner.task_replay import replay_of_task
from waygraph.agents.runner.trace import TRACE_FILE, TraceWriter
from waygraph.core.errors import NotFound
from waygraph.core.replay_file import MAX_IMAGE_BYTES, ReplayFile
from waygraph.core.schemas import UsageModel

JPEG = b"\xff\xd8\xff\xe0 a picture"
USAGE = UsageModel(model="m", calls=1, input_tokens=900, output_tokens=30, seconds=1.5)


def step(state, action, **values):
    return AgentStep(state, f"http://a.example/{state}", action, status="done", message="Clicked.", **values)


@pytest.fixture
async def folder(tmp_path):
    trace = TraceWriter(tmp_path)
    trace.write("start", task="7", intent="Find the returns", agent="model", sites=[{"key": "a.example"}])
    await trace.write_step(step("one", "click [1]", thinking="It says so.", usage=USAGE), SimpleNamespace(text="page"))
    await trace.write_step(step("two", "click [2]", details={"score": 0.5}), SimpleNamespace(text="page"))
    trace.write("end", ended="answered", answer="30 days", url="http://a.example/end", problem="")
    return tmp_path


def add_screenshots(folder, *names):
    """Name a screenshot in each step, as others may have written them."""
    lines = [json.loads(line) for line in (folder / TRACE_FILE).read_text().splitlines()]
    for line, name in zip([each for each in lines if each["kind"] == "step"], names, strict=True):
        line["screenshot"] = name
    (folder / TRACE_FILE).write_text("\n".join(map(json.dumps, lines)))


async def test_steps_have_the_pages_before_and_after_them_and_the_words_of_the_model(folder):
    replay = ReplayFile.model_validate_json(replay_of_task(folder).model_dump_json())
    first, second = replay.steps
    assert (replay.kind, replay.title, replay.site) == ("agent", "Find the returns", "a.example")
    assert (first.thinking, first.usage, second.details) == ("It says so.", USAGE, {"score": 0.5})
    assert (first.before.node_id, first.after.node_id) == ("one", "two")
    assert (second.after.url, first.expected, first.agrees) == ("http://a.example/end", None, None)
    assert [replay.texts[each.before.text] for each in replay.steps] == ["page", "page"]
    assert len(replay.texts) == 1
    assert (replay.outcome.answer, replay.outcome.good) == ("30 days", None)
    assert replay.images == {}


async def test_screenshots_are_stored_once_and_oversized_ones_left_out(folder):
    name = TraceWriter(folder / "other").store_screenshot(JPEG)
    (folder / "other" / "screenshots").rename(folder / "screenshots")
    add_screenshots(folder, name, name)
    replay = replay_of_task(folder)
    (image,) = replay.images.values()
    assert base64.b64decode(image.removeprefix("data:image/jpeg;base64,")) == JPEG
    assert {each.before.screenshot for each in replay.steps} == set(replay.images)

    (folder / "screenshots" / f"{name}.jpg").write_bytes(JPEG + bytes(MAX_IMAGE_BYTES))
    replay = replay_of_task(folder)
    assert (replay.images, replay.images_left_out) == ({}, 2)


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "screenshots/../../x", "0123456789abcdef"])
async def test_names_of_other_files_and_of_missing_ones_are_left_out(folder, name):
    (folder.parent / "secret.jpg").write_bytes(JPEG)
    add_screenshots(folder, name, "")
    replay = replay_of_task(folder)
    assert (replay.images, len(replay.steps)) == ({}, 2)


async def test_the_trace_of_a_killed_attempt_ends_with_its_last_complete_line(folder):
    text = (folder / TRACE_FILE).read_text()
    (folder / TRACE_FILE).write_text(text[: text.index('{"kind": "end"') + 20])
    replay = replay_of_task(folder)
    assert (len(replay.steps), replay.outcome, replay.steps[-1].after) == (2, None, None)


async def test_a_damaged_line_is_left_out_and_a_missing_trace_is_not_found(folder, tmp_path):
    with (folder / TRACE_FILE).open("a") as file:
        file.write('{"kind": "step", "url": 7}\nno JSON\n[]\n')
    assert len(replay_of_task(folder).steps) == 2
    with pytest.raises(NotFound):
        replay_of_task(tmp_path / "nothing")
