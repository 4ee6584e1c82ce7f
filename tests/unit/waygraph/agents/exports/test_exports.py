"""Stored runs in the formats of other scorers."""

import io
import json

import pytest
from PIL import Image

from waygraph.agents.exports.online_mind2web import result_document, trajectory
from waygraph.agents.exports.webarena_verified import agent_response
from waygraph.agents.exports.write import ExportFormat, export_run
from waygraph.agents.run_record import AgentStep, AttemptEnd
from waygraph.agents.runner.trace import TraceWriter
from waygraph.agents.runner.trace_reading import TaskTrace, TraceEnd, TraceStep, read_trace
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.core.errors import InvalidInput


def answered(text, ended=AttemptEnd.ANSWERED, problem=""):
    return TaskAnswer(answer=text, url="http://a.example/", ended=ended, problem=problem)


def fields_of(answer, *, changed_data=False):
    response = agent_response(answer, changed_data=changed_data)
    return response.task_type, response.status, response.retrieved_data


@pytest.mark.parametrize(
    ("text", "changed", "expected"),
    [
        ("42", False, ("RETRIEVE", "SUCCESS", ["42"])),
        ('["Ann", "Bob"]', False, ("RETRIEVE", "SUCCESS", ["Ann", "Bob"])),
        ("", False, ("NAVIGATE", "SUCCESS", None)),
        ("", True, ("MUTATE", "SUCCESS", None)),
        ("n/a", False, ("RETRIEVE", "NOT_FOUND_ERROR", None)),
        ("N/A", True, ("MUTATE", "NOT_FOUND_ERROR", None)),
    ],
)
def test_the_kind_of_a_verified_task_is_concluded_from_the_answer_and_the_requests(text, changed, expected):
    assert fields_of(answered(text), changed_data=changed) == expected


@pytest.mark.parametrize("text", ["{}", "Here it is:\n```json\n{}\n```\nDone."])
def test_an_answer_that_is_a_verified_response_is_used_as_it_is(text):
    document = {"task_type": "mutate", "status": "permission_denied_error", "error_details": "no right", "more": 1}
    given = text.replace("{}", json.dumps(document))
    response = agent_response(answered(given), changed_data=False)
    assert response.model_dump(mode="json") == {
        "task_type": "MUTATE",
        "status": "PERMISSION_DENIED_ERROR",
        "retrieved_data": None,
        "error_details": "no right",
    }


def test_an_answer_with_unknown_values_in_these_fields_is_a_text():
    text = '{"task_type": "RETRIEVE", "status": "FINE"}'
    assert fields_of(answered(text)) == ("RETRIEVE", "SUCCESS", [text])


def test_an_agent_that_did_not_finish_and_left_no_answer_leaves_an_error_with_its_reason():
    response = agent_response(answered("", AttemptEnd.BUDGET, "No money."), changed_data=False)
    assert (response.task_type, response.status, response.error_details) == ("NAVIGATE", "UNKNOWN_ERROR", "No money.")
    response = agent_response(answered("", AttemptEnd.STEP_LIMIT), changed_data=False)
    assert "step_limit" in response.error_details
    assert fields_of(answered("42", AttemptEnd.STEP_LIMIT)) == ("RETRIEVE", "SUCCESS", ["42"])


def make_task(task_id):
    return Task(task_id=task_id, benchmark=TaskBenchmark.ONLINE_MIND2WEB, intent="Find it", start_urls=("http://a/",))


def test_a_trajectory_ends_with_the_answer_and_the_last_window(tmp_path):
    steps = (
        TraceStep(action="click [1]", status="done", thinking="It is near.", screenshot="a" * 16),
        TraceStep(action="click [2]", status="refused", message="Left alone."),
    )
    trace = TaskTrace(tmp_path, steps=steps, end=TraceEnd(screenshot="b" * 16))
    document = result_document(make_task("7"), answered("42"), trajectory(answered("42"), trace))
    assert document == {
        "task_id": "7",
        "task": "Find it",
        "schema_version": "online-mind2web-v2",
        "action_history": [
            {"action": "click [1]", "thought": "It is near.", "screenshot": "trajectory/0000.png"},
            {"action": "click [2] -> refused: Left alone.", "thought": "", "screenshot": ""},
            {"action": "stop [42]", "thought": "", "screenshot": "trajectory/0002.png"},
        ],
        "agent_final_answer": "42",
    }
    stopped = TaskTrace(tmp_path, steps=(TraceStep(action="stop [42]", status="kept"),))
    assert [step.action for step in trajectory(answered("42"), stopped)] == ["stop [42]"]


def jpeg(colour):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(file, format="JPEG")
    return file.getvalue()


@pytest.fixture
async def run(tmp_path):
    """A run of three tasks: one with evidence, one without, and one without a result."""
    folder = RunFolder(tmp_path / "run")
    file = StoredTaskFile(name="t.json", sha256="0")
    folder.write_manifest(TaskRunManifest(created="2026-01-01", task_file=file, tasks=("a/b", "2", "3")))
    for task_id in ("a/b", "2"):
        folder.write_attempt(make_task(task_id), answered("42"), {})
    trace = TraceWriter(folder.task_folder("a/b"))
    step = AgentStep(state="", url="http://a/", action="click [1]", status="done", message="")
    shown = trace.store_screenshot(jpeg("red"))
    with (folder.task_folder("a/b") / "trace.jsonl").open("a") as lines:
        lines.write(json.dumps({"kind": "step", "action": step.action, "status": "done", "screenshot": shown}) + "\n")
    trace.write("end", screenshot=trace.store_screenshot(jpeg("blue")))
    entry = {"request": {"method": "GET", "url": "http://a/", "headers": []}, "response": {"status": 200}}
    (folder.task_folder("a/b") / "network.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    return folder


def test_tasks_without_the_files_of_a_format_are_left_out(run, tmp_path):
    exported = export_run(run, ExportFormat.WEBARENA_VERIFIED, tmp_path / "out")
    assert exported.tasks == ("a/b",)
    assert exported.left_out.keys() == {"2", "3"}
    folder = tmp_path / "out" / "a%2Fb"
    assert json.loads((folder / "agent_response.json").read_text())["retrieved_data"] == ["42"]
    assert json.loads((folder / "network.har").read_text())["log"]["entries"]
    with pytest.raises(InvalidInput, match="not empty"):
        export_run(run, ExportFormat.WEBARENA_VERIFIED, tmp_path / "out")


def test_screenshots_become_png_files(run, tmp_path):
    exported = export_run(run, ExportFormat.ONLINE_MIND2WEB, tmp_path / "out")
    assert exported.tasks == ("a/b",)
    folder = tmp_path / "out" / "a%2Fb"
    history = json.loads((folder / "result.json").read_text())["action_history"]
    assert [step["action"] for step in history] == ["click [1]", "stop [42]"]
    for step, channel in zip(history, (0, 2), strict=True):
        with Image.open(folder / step["screenshot"]) as image:
            assert image.format == "PNG"
            assert image.getpixel((4, 4))[channel] > 200


def test_a_trace_is_read_up_to_the_line_at_which_its_writer_was_killed(tmp_path):
    lines = ['{"kind": "start"}', '{"kind": "step", "action": "click [1]"}', '{"kind": "step", "acti']
    (tmp_path / "trace.jsonl").write_text("\n".join(lines))
    assert [step.action for step in read_trace(tmp_path).steps] == ["click [1]"]


def test_names_in_a_trace_lead_out_of_no_folder(tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"x")
    (tmp_path / "task" / "screenshots").mkdir(parents=True)
    assert TaskTrace(tmp_path / "task").screenshot("../../secret") is None
