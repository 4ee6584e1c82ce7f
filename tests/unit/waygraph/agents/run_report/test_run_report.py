"""Reports of runs: numbers by group, and pages whose texts are escaped and that load nothing."""

import io
import json
import re

import pytest
from PIL import Image

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.run_report.figures import evaluators_of, group_figures, grouped, site_of, task_results
from waygraph.agents.run_report.write import write_repeats_report, write_report
from waygraph.agents.runner.trace import TraceWriter
from waygraph.agents.scoring.dialects import DIALECTS, DialectName
from waygraph.agents.scoring.repeats import summarise_repeats
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.scoring.run_score import score_run
from waygraph.agents.tasks.task import EvaluatorKind, ReferenceAnswers, Task, TaskBenchmark, TaskEvaluation
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
    return run, await score_run(run, DIALECTS[DialectName.WEBARENA])


def test_numbers_add_up_by_site(stored):
    results = task_results(*stored)
    shop, elsewhere = grouped(results, site_of)
    assert (shop.name, shop.tasks, shop.successes, shop.success_rate) == ("shop", 3, 1, "33%")
    assert (shop.steps, shop.seconds, shop.tokens, shop.cost) == (8, 6.0, 32, 0.75)
    assert (elsewhere.name, elsewhere.tokens, elsewhere.cost) == ("a.example:80", 0, None)
    (by_evaluator,) = grouped(results, evaluators_of)
    assert (by_evaluator.name, by_evaluator.tasks) == ("string_match", 4)


def test_a_task_without_a_result_makes_the_rate_a_range(stored):
    every = group_figures("all", task_results(*stored))
    assert (every.tasks, every.done, every.undecided, every.success_rate) == (5, 4, 1, "40% to 60%")


def step_line(trace, **values):
    trace.write("step", status="done", message="m", url="http://a.example/", **values)


async def test_pages_show_texts_of_sites_and_agents_as_texts_and_load_nothing(stored, tmp_path):
    run, score = stored
    trace = TraceWriter(RunFolder(tmp_path).task_folder("a/b"))
    image = io.BytesIO()
    Image.new("RGB", (1280, 800), "red").save(image, format="JPEG")
    observation = tmp_path / "tasks" / "a%2Fb" / "observations" / f"{'c' * 16}.txt"
    observation.write_text(HOSTILE)
    shown = trace.store_screenshot(image.getvalue())
    step_line(trace, action=HOSTILE, thinking=HOSTILE, screenshot=shown, observation="c" * 16)
    step_line(trace, action="x", screenshot=trace.store_screenshot(b"no image"))
    page = write_report(tmp_path, run, score)
    for path in (page, tmp_path / "tasks" / "a%2Fb" / "trace.html"):
        text = path.read_text()
        assert "<script" not in text
        assert "<img src=x" not in text
        assert "&lt;script&gt;" in text
        assert not re.findall(r'(?:src|href)="(?!data:image/jpeg;base64,|tasks/|\.\./\.\./report\.html)', text)
    assert text.count("data:image/jpeg") == 1
    assert text.count("no screenshot") == 1
    links = re.findall(r'href="([^"]*)"', page.read_text())
    assert links == ["tasks/1/trace.html", "tasks/2/trace.html", "tasks/a%252Fb/trace.html", "tasks/4/trace.html"]


def test_a_task_without_a_result_shows_why_its_attempt_failed(stored, tmp_path):
    TraceWriter(RunFolder(tmp_path).task_folder("5")).write("end", failure="start_failed", problem="No such site.")
    page = write_report(tmp_path, *stored)
    assert "No such site." in page.read_text()
    assert "No such site." in (tmp_path / "tasks" / "5" / "trace.html").read_text()


async def test_a_repeated_run_has_a_page_that_leads_to_its_repeats(stored, tmp_path):
    _, score = stored
    better = score.model_copy(update={"successes": 4})
    result = summarise_repeats([score, better])
    folders = [tmp_path / "repeats" / "1", tmp_path / "repeats" / "2"]
    text = write_repeats_report(tmp_path, result, folders).read_text()
    assert re.findall(r'href="([^"]*)"', text) == ["repeats/1/report.html", "repeats/2/report.html"]
    assert "60.0%" in text  # the mean of 2 and 4 of 5
    assert json.loads(result.model_dump_json())["success_rates"] == [0.4, 0.8]
