"""Reports of runs: numbers by group, tasks with their traces, and a file that can be mailed."""

import hashlib
import io
import json
import random
import re

import pytest
from PIL import Image

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.run_report import page, traces
from waygraph.agents.run_report.write import write_repeats_report, write_report
from waygraph.agents.runner.trace import TraceWriter
from waygraph.agents.scoring.repeats import summarise_repeats
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.scoring.run_score import score_run
from waygraph.agents.tasks.task import EvaluatorKind, ReferenceAnswers, Task, TaskBenchmark, TaskEvaluation
from waygraph.core.report_file import size_in_report
from waygraph.core.schemas import UsageModel

HOSTILE = "<script>alert(1)</script>\"'&<img src=x>"


def make_task(task_id, *, expected="42", sites=("shop",), intent="Find it"):
    return Task(
        task_id=task_id,
        benchmark=TaskBenchmark.WEBARENA,
        intent=intent,
        sites=sites,
        start_urls=("http://a.example:80/",),
        evaluation=TaskEvaluation(
            eval_types=(EvaluatorKind.STRING_MATCH,), reference_answers=ReferenceAnswers(exact_match=expected)
        ),
    )


def make_answer(text="42", **values):
    return TaskAnswer(answer=text, url="http://a.example/", ended=AttemptEnd.ANSWERED, **values)


def usage(tokens, cost):
    return UsageModel(model="m", calls=1, input_tokens=tokens, output_tokens=1, seconds=1.0, cost=cost)


@pytest.fixture
async def stored(tmp_path):
    """A run of three tasks at the shop, one at no named site, and one without a result."""
    folder = RunFolder(tmp_path)
    ids = ("1", "2", "a/b", "4", "5")
    folder.write_manifest(
        TaskRunManifest(
            created="2026-01-01",
            task_file=StoredTaskFile(name="t.json", sha256="0"),
            tasks=ids,
            labels={"agent": HOSTILE},
        )
    )
    folder.write_attempt(make_task("1"), make_answer(steps=3, seconds=2.0, usage=usage(10, 0.5)), {})
    folder.write_attempt(make_task("2"), make_answer("41", steps=5, seconds=4.0, usage=usage(20, 0.25)), {})
    folder.write_attempt(make_task("a/b", intent=HOSTILE), make_answer(HOSTILE, problem=HOSTILE), {})
    folder.write_attempt(make_task("4", sites=()), make_answer(steps=1, seconds=1.0), {})
    run = folder.read()
    return run, await score_run(run)


def test_numbers_add_up_by_site(stored):
    _, score = stored
    shop, elsewhere = score.groups["site"]
    assert (shop.name, shop.tasks, shop.successes, shop.undecided) == ("shop", 3, 1, 0)
    assert (shop.steps, shop.seconds, shop.input_tokens, shop.output_tokens, shop.cost) == (8, 6.0, 30, 2, 0.75)
    assert (shop.mean_steps, shop.mean_seconds, shop.mean_input_tokens) == (2.667, 2.0, 10.0)
    assert (elsewhere.name, elsewhere.input_tokens, elsewhere.cost) == ("a.example:80", 0, None)
    (by_evaluator,) = score.groups["evaluator"]
    assert (by_evaluator.name, by_evaluator.tasks) == ("string_match", 4)
    assert list(score.groups) == ["site", "evaluator"], "no task has a label"


def test_a_task_without_a_result_is_undecided(stored):
    every = stored[1].figures
    assert (every.tasks, every.done, every.successes, every.undecided) == (5, 4, 2, 1)


async def test_tasks_over_several_sites_are_one_row_and_labels_make_rows(tmp_path):
    folder = RunFolder(tmp_path)
    places = {"1": ("shop",), "2": ("shop", "forum"), "3": ("shop", "map"), "4": ("forum",)}
    folder.write_manifest(
        TaskRunManifest(created="2026", task_file=StoredTaskFile(name="t.json", sha256="0"), tasks=tuple(places))
    )
    for task_id, sites in places.items():
        labels = {"type_main": "calc" if task_id == "1" else "others", "level": "hard"}
        task = make_task(task_id, sites=sites).model_copy(update={"labels": labels})
        folder.write_attempt(task, make_answer("42" if task_id == "2" else "41"), {})
    run = folder.read()
    score = await score_run(run)
    rows = {kind: {row.name: (row.tasks, row.successes) for row in rows} for kind, rows in score.groups.items()}
    assert rows["site"] == {"multi-site": (2, 1), "forum": (1, 0), "shop": (1, 0)}
    assert rows["type_main"] == {"others": (3, 1), "calc": (1, 0)}
    assert rows["level"] == {"hard": (4, 1)}
    content, _, _ = document_of(write_report(tmp_path, run, score))
    assert [row["name"] for row in content["groups"]["type_main"]] == ["others", "calc"]


def document_of(path):
    """Return the content of a report, its images and the whole text."""
    text = path.read_text(encoding="utf-8")
    (content,) = re.findall(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
    document = json.loads(content)
    return document["content"], document["images"], text


def noise(seed, size=(640, 400)):
    """Return a JPEG that is hardly compressible."""
    image = io.BytesIO()
    Image.frombytes("RGB", size, random.Random(seed).randbytes(3 * size[0] * size[1])).save(image, format="JPEG")
    return image.getvalue()


def write_trace(folder, task_id, steps, *, read=""):
    """Write a trace of steps, each with a window of its own."""
    trace = TraceWriter(folder.task_folder(task_id))
    observation = hashlib.sha256(read.encode()).hexdigest()[:16]
    (folder.task_folder(task_id) / "observations" / f"{observation}.txt").write_text(read)
    trace.write("start", task=task_id, intent="Find it", agent="greedy")
    for number in range(steps):
        shown = trace.store_screenshot(noise(f"{task_id} {number}"))
        trace.write(
            "step", action=f"step {number}", status="done", message="m", url="http://a.example/",
            screenshot=shown, observation=observation,
        )  # fmt: skip
    trace.write("end", ended="answered", answer="42", url="http://a.example/", problem="")


def test_a_report_is_one_file_with_the_trace_of_each_task(stored, tmp_path):
    run, score = stored
    write_trace(RunFolder(tmp_path), "a/b", 2, read=HOSTILE)
    content, images, text = document_of(write_report(tmp_path, run, score))
    tasks = {task["id"]: task for task in content["tasks"]}
    assert list(tasks) == ["1", "2", "a/b", "4", "5"]
    assert [task["success"] for task in tasks.values()] == [True, False, False, True, None]
    replay = tasks["a/b"]["replay"]
    assert [each["action"] for each in replay["steps"]] == ["step 0", "step 1"]
    shown = [each["before"]["screenshot"] for each in replay["steps"]]
    assert sorted(shown) == sorted(images)
    assert {content["texts"][each["before"]["text"]] for each in replay["steps"]} == {HOSTILE}
    assert (tasks["1"]["replay"], tasks["5"]["result"]) == (None, None)
    assert "<img src=x" not in text
    assert sorted(path.name for path in tmp_path.rglob("*.html")) == ["report.html"]


def test_a_task_without_a_result_shows_why_its_attempt_failed(stored, tmp_path):
    TraceWriter(RunFolder(tmp_path).task_folder("5")).write("end", failure="start_failed", problem="No such site.")
    content, _, _ = document_of(write_report(tmp_path, *stored))
    assert content["tasks"][-1]["problem"] == "No such site."


def test_windows_and_texts_beyond_the_limits_are_left_out_in_turns(stored, tmp_path, monkeypatch):
    run, score = stored
    for task_id in ("1", "2"):
        write_trace(RunFolder(tmp_path), task_id, 3, read=task_id * 400)
    one = len(document_of(write_report(tmp_path, run, score))[1].popitem()[1]) * 3 // 4
    monkeypatch.setattr(traces, "MAX_IMAGES_BYTES", int(2.5 * one))
    monkeypatch.setattr(traces, "MAX_TEXTS_BYTES", 500)
    content, images, _ = document_of(write_report(tmp_path, run, score))
    by_id = {task["id"]: task["replay"] for task in content["tasks"]}
    last = {by_id[task_id]["steps"][-1]["before"]["screenshot"] for task_id in ("1", "2")}
    assert set(images) == last, "the last window of each task comes first"
    assert list(content["texts"].values()) == ["2" * 400], "the task that failed comes first"
    assert content["left_out"] == {"traces": 0, "images": 4, "texts": 1, "tasks": 0}


def test_traces_beyond_the_limit_are_left_out_of_tasks_that_succeeded(stored, tmp_path, monkeypatch):
    run, score = stored
    for task_id in ("1", "2"):
        write_trace(RunFolder(tmp_path), task_id, 3)
    monkeypatch.setattr(traces, "MAX_TRACES_BYTES", 1_200)
    content, _, _ = document_of(write_report(tmp_path, run, score))
    assert [task["id"] for task in content["tasks"] if task["replay"] is not None] == ["2"]
    assert content["left_out"]["traces"] == 1


def test_tasks_beyond_the_limit_are_left_out_and_counted(stored, tmp_path, monkeypatch):
    run, score = stored
    rows = document_of(write_report(tmp_path, run, score))[0]["tasks"]
    first_two = sum(size_in_report(row) for row in rows[:2])
    monkeypatch.setattr(page, "MAX_ROWS_BYTES", first_two)
    content, _, _ = document_of(write_report(tmp_path, run, score))
    assert [row["id"] for row in content["tasks"]] == ["1", "2"]
    assert (content["left_out"]["tasks"], content["all"]["tasks"]) == (3, 5)


def test_sizes_count_what_the_file_escapes():
    assert size_in_report("<é") == len('"\\u003cé"'.encode())


async def test_files_that_are_no_images_and_times_that_are_no_numbers_are_left_out(stored, tmp_path):
    folder = RunFolder(tmp_path)
    trace = TraceWriter(folder.task_folder("1"))
    trace.write("step", action="x", screenshot=trace.store_screenshot(b"no image"))
    folder.write_attempt(make_task("1"), make_answer(seconds=float("nan")), {})
    run = folder.read()
    content, images, _ = document_of(write_report(tmp_path, run, await score_run(run)))
    assert (images, content["left_out"]["images"]) == ({}, 1)
    assert (content["tasks"][0]["result"]["seconds"], content["all"]["seconds"]) == (None, None)


async def test_a_repeated_run_has_a_report_that_leads_to_its_repeats(stored, tmp_path):
    _, score = stored
    better = score.model_copy(update={"successes": 4})
    result = summarise_repeats([score, better])
    folders = [tmp_path / "repeats" / "1", tmp_path / "repeats" / "2"]
    content, _, _ = document_of(write_repeats_report(tmp_path, result, folders))
    assert [each["link"] for each in content["repeats"]] == ["repeats/1/report.html", "repeats/2/report.html"]
    assert content["mean_success"] == pytest.approx(0.6)
    assert json.loads(result.model_dump_json())["success_rates"] == [0.4, 0.8]
