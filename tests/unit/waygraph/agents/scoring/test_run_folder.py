"""Stored runs: what is written is read again, and scored without the site."""

from __future__ import annotations

import asyncio
import json

import pytest

from waygraph.agents.models.cassette import CassetteModel
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.scoring.checks import ScoringNeed
from waygraph.agents.scoring.dialects import DialectName
from waygraph.agents.scoring.final_state import FindingProblem, PageFinding
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.scoring.run_score import score_run
from waygraph.agents.tasks.formats import read_row
from waygraph.cli.app import command
from waygraph.core.errors import InvalidInput

PAGES = [
    {"url": "last", "locator": "", "required_contents": {"must_include": ["<b>paid</b>"]}},
    {"url": "http://a.example/x", "locator": "document.title", "required_contents": {"exact_match": "X"}},
]


def row(task_id: str, evaluation: dict) -> dict:
    return {
        "task_id": task_id, "intent": "Do it", "sites": ["shop"], "start_url": "http://a.example", "eval": evaluation,
    }  # fmt: skip


ANSWERED = read_row(row("1", {"eval_types": ["string_match"], "reference_answers": {"must_include": ["9", "8"]}}))
LOOKED = read_row(row("../2", {"eval_types": ["program_html"], "program_html": PAGES}))
JUDGED = read_row(row("3", {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["nine"]}}))
FINDINGS = {
    (0, 0): PageFinding(url="http://a.example/", value="<html><b>paid</b></html>"),
    (1, 0): PageFinding(url="http://a.example/x", value="X"),
}


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "run")
    tasks = StoredTaskFile(name="test.raw.json", sha256="ab" * 32)
    made.write_manifest(
        TaskRunManifest(created="2026-11-23T10:00:00Z", task_file=tasks, tasks=("1", "../2", "3", "never done"))
    )
    made.write_attempt(ANSWERED, TaskAnswer(answer="9", url="http://a.example/"), {})
    made.write_attempt(LOOKED, TaskAnswer(answer="", url="http://a.example/"), FINDINGS)
    made.write_attempt(JUDGED, TaskAnswer(answer="9", url="http://a.example/"), {})
    return made


def test_a_run_is_read_as_it_was_written(folder, tmp_path):
    run = folder.read()
    assert {key: attempt.task for key, attempt in run.attempts.items()} == {
        "1": ANSWERED, "../2": LOOKED, "3": JUDGED,
    }  # fmt: skip
    assert run.attempts["../2"].state.findings == FINDINGS
    assert list(run.problems) == ["never done"]
    # The id of a task is the name of one folder, whatever it contains.
    assert not (tmp_path / "2").exists()
    assert (tmp_path / "run/tasks/%2E%2E%2F2/page-0-0.html").read_text() == "<html><b>paid</b></html>"


async def test_a_run_is_scored_from_its_files(folder):
    score = await score_run(folder.read(), DialectName.AGENTOCCAM)
    assert [each.reward for each in score.scores] == [0.5, 1.0, None, None]
    assert (score.tasks, score.scored, score.successes, score.mean_reward) == (4, 2, 1, 0.75)
    assert score.needs == {ScoringNeed.MODEL: 1, ScoringNeed.RUN: 1}
    assert score.success_range() == (0.25, 0.75)
    assert score.task_file.sha256 == "ab" * 32


async def test_an_attempt_replaces_an_earlier_one(folder):
    assert folder.has("../2")
    assert not folder.has("never done")
    failed = PageFinding(url="http://a.example/x", problem=FindingProblem.UNREACHABLE)
    folder.write_attempt(LOOKED, TaskAnswer(answer="", url="http://a.example/"), {**FINDINGS, (1, 0): failed})
    score = await score_run(folder.read(), DialectName.WEBARENA)
    assert score.scores[1].needs == (ScoringNeed.LIVE_SITE,)


def test_damaged_files_are_problems_of_their_task(folder, tmp_path):
    place = tmp_path / "run/tasks/1/answer.json"
    place.write_text(json.dumps({"version": 2, "answer": "", "url": ""}))
    (tmp_path / "run/tasks/%2E%2E%2F2/page-0-0.html").unlink()
    run = folder.read()
    assert list(run.attempts) == ["3"]
    assert "version" in run.problems["1"]
    assert "page-0-0.html" in run.problems["../2"]


def test_a_run_of_others_needs_two_files_per_task(folder, tmp_path):
    (tmp_path / "run/tasks/1/findings.json").unlink()
    assert "1" in folder.read().attempts


def test_half_a_character_in_an_answer_or_on_a_page_does_no_harm(folder):
    half = {(0, 0): PageFinding(url="x", value="\ud83d"), (1, 0): PageFinding(url="x", value=["\ud83d", 1.5, None])}
    folder.write_attempt(LOOKED, TaskAnswer(answer="\ud83d", url="x"), half)
    state = folder.read().attempts["../2"].state
    assert (state.answer, state.findings[0, 0].value) == ("\ufffd", "\ufffd")
    assert state.findings[1, 0].value == ["\ufffd", 1.5, None]


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no stored run"):
        RunFolder(tmp_path).read()
    (tmp_path / "run.json").write_text('{"format": "waygraph-run", "version": 9}')
    with pytest.raises(InvalidInput, match=r"run\.json has version 9; version 1 is read"):
        RunFolder(tmp_path).read()


# ---- commands --------------------------------------------------------------------------------------------------------


def run_command(*arguments: str) -> object:
    return command()(args=list(arguments), prog_name="waygraph", standalone_mode=False)


def test_score_prints_what_is_known_and_what_is_missing(folder, tmp_path, capsys):
    run_command("score", str(tmp_path / "run"), "--checks")
    out = capsys.readouterr().out
    assert "1 of 4 tasks succeeded (between 25.0% and 75.0%)." in out
    assert "1 need a model, 1 need a run" in out
    assert f"sha256 {'ab' * 32}" in out


async def record_judge(folder, cassette):
    judge = ScriptedModel(['{"reason": "the same", "verdict": "correct"}'])
    await score_run(folder.read(), DialectName.WEBARENA, CassetteModel(cassette, judge))


def test_a_recorded_judge_is_replayed_without_a_model(folder, tmp_path, capsys):
    asyncio.run(record_judge(folder, tmp_path / "judge.jsonl"))
    run_command("score", str(tmp_path / "run"), "--cassette", str(tmp_path / "judge.jsonl"))
    out = capsys.readouterr().out
    assert "2 of 4 tasks succeeded (between 50.0% and 75.0%)." in out


def test_score_prints_one_json_document(folder, tmp_path, capsys):
    run_command("score", str(tmp_path / "run"), "--dialect", "agentoccam", "--json")
    document = json.loads(capsys.readouterr().out)
    assert (document["dialect"], document["mean_reward"]) == ("agentoccam", 0.75)


def test_alternatives_of_urls_that_no_page_matches_are_named(tmp_path, capsys):
    """WebArena wants the query parameters of all alternatives together."""
    urls = {"1": "http://a/x?q=1 |OR| http://a/y?q=2", "2": "http://a/x?q=1 |OR| http://a/y", "3": "http://a/x?q=1"}
    rows = [row(id_, {"eval_types": ["url_match"], "reference_url": url}) for id_, url in urls.items()]
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps(rows))
    run_command("tasks", "check", str(file), "--json")
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert list(warnings) == ["2"]
    assert warnings["2"].endswith(": http://a/y")
    run_command("tasks", "check", str(file))
    assert "task 2: url_match wants" in capsys.readouterr().out


def test_tasks_are_listed_and_checked(tmp_path, capsys):
    file = tmp_path / "tasks.json"
    good = row("1", {"eval_types": ["string_match"], "reference_answers": {"exact_match": "x"}})
    file.write_text(json.dumps([good, {"task_id": 2}]))
    run_command("tasks", "list", str(file), "--site", "shop")
    captured = capsys.readouterr()
    assert "Do it" in captured.out
    assert "1 problem(s)" in captured.err
    with pytest.raises(InvalidInput, match="1 problem"):
        run_command("tasks", "check", str(file))
    assert "neither 'eval' nor 'confirmed_task'" in capsys.readouterr().out
    file.write_text(json.dumps([good]))
    run_command("tasks", "check", str(file), "--json")
    assert json.loads(capsys.readouterr().out)["evaluators"] == {"string_match": 1}
