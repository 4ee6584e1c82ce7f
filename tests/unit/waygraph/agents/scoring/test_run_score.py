"""Scores of runs: the dialect of each task, the interval of the rate, and the tasks that are counted."""

from __future__ import annotations

import json

import pytest
from pydantic import SecretStr

from waygraph.agents.scoring.checks import ScoringNeed
from waygraph.agents.scoring.dialects import DIALECTS, DialectName
from waygraph.agents.scoring.final_state import FinalState, FindingProblem, PageFinding
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.scoring.run_score import score_run, wilson_interval
from waygraph.agents.scoring.score import score_task
from waygraph.agents.scoring.shop_access import shop_access
from waygraph.agents.tasks.formats import read_row
from waygraph.cli.app import command
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import ShopSettings


def row(task_id, **fields):
    evaluation = {"eval_types": ["string_match"], "reference_answers": {"must_include": ["nine |OR| 9"]}}
    made = {"task_id": task_id, "intent": "Count", "sites": ["shop"], "start_url": "http://a.example"}
    return {**made, "eval": evaluation, **fields}


CHORE = read_row(row("1", type_main="calc", type_sub="", required_obs="any", affects_environment=True))
PLAIN = read_row(row("2"))


def make_run(path, *tasks, dialect=None, more=()):
    folder = RunFolder(path)
    ids = (*(task.task_id for task in tasks), *more)
    file = StoredTaskFile(name="t.json", sha256="0" * 64)
    folder.write_manifest(TaskRunManifest(created="2026", task_file=file, tasks=ids, dialect=dialect))
    for task in tasks:
        folder.write_attempt(task, TaskAnswer(answer="It is nine.", url="http://a.example"), {})
    return folder


async def test_a_task_is_scored_in_the_dialect_of_its_benchmark(tmp_path):
    score = await score_run(make_run(tmp_path, CHORE, PLAIN).read())
    assert [(each.scorer, each.success) for each in score.scores] == [("agentoccam", True), ("webarena", False)]
    assert (score.dialect, score.scorers) == (None, {"agentoccam": 1, "webarena": 1})


async def test_a_task_of_another_benchmarks_scorer_has_no_dialect():
    task = PLAIN.model_copy(update={"evaluation": None, "other_scorers": ("AgentResponseEvaluator",)})
    score = await score_task(task, FinalState("", ""), DIALECTS[DialectName.WEBARENA])
    assert (score.scorer, score.needs) == ("", (ScoringNeed.OTHER_SCORER,))


async def test_the_dialect_of_a_run_is_stored_and_can_be_overridden(tmp_path):
    run = make_run(tmp_path, CHORE, PLAIN, dialect=DialectName.WEBARENA).read()
    assert json.loads((tmp_path / "run.json").read_text())["dialect"] == "webarena"
    assert (await score_run(run)).successes == 0
    assert (await score_run(run, DialectName.WEBOPERATOR)).successes == 2


async def test_a_rate_has_an_interval_once_all_tasks_are_scored(tmp_path):
    score = await score_run(make_run(tmp_path / "all", CHORE, PLAIN).read())
    assert score.interval == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert (await score_run(make_run(tmp_path / "one", CHORE, more=("9",)).read())).interval is None
    assert wilson_interval(0, 5)[0] == 0
    assert wilson_interval(5, 5)[1] == 1


def score_command(*arguments):
    command()(args=["score", *arguments], prog_name="waygraph", standalone_mode=False)


def test_only_tasks_with_a_label_are_scored(tmp_path, capsys):
    make_run(tmp_path, CHORE, PLAIN, more=("9",))
    score_command(str(tmp_path), "--where", "type_main=calc", "--where", "affects_environment=true")
    printed = capsys.readouterr()
    assert "1 of 1 tasks succeeded (100.0%)." in printed.out
    assert "1 task(s) without a result are left out" in printed.err
    for wrong, hint in (("type_main=sum", "Values: calc"), ("typ=calc", "type_main"), ("calc", "level=hard")):
        with pytest.raises(InvalidInput) as error:
            score_command(str(tmp_path), "--where", wrong)
        assert hint in error.value.hint


def test_means_are_printed_by_group(tmp_path, capsys):
    folder = make_run(tmp_path, CHORE, PLAIN)
    folder.write_attempt(
        CHORE.model_copy(update={"sites": ("shop", "forum")}),
        TaskAnswer(answer="nine", url="http://a.example", steps=7, seconds=2.5),
        {},
    )
    score_command(str(tmp_path))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["site", "multi-site", "1", "1", "100.0%", "7.0", "2.5"] in lines
    assert ["all", "2", "1", "50.0%", "3.5", "1.2"] in lines


# ---- the shop's API --------------------------------------------------------------------------------------------------


def test_the_shop_is_accessed_with_an_account_or_a_token_at_the_tasks_host_unless_another_is_set():
    assert shop_access(ShopSettings(), "http://a.example/x") is None
    assert shop_access(ShopSettings(password=SecretStr("x")), "http://a.example/x") is None
    account = shop_access(ShopSettings(user="admin", password=SecretStr("x")), "http://a.example:7770/x?y")
    assert account._base_url == "http://a.example:7770"
    elsewhere = shop_access(ShopSettings(token=SecretStr("t"), url="http://b.example/"), "http://a.example")
    assert (elsewhere._base_url, elsewhere._token) == ("http://b.example", "t")


async def test_a_task_that_needs_the_shops_account_says_so():
    target = {
        "url": "func:shopping_get_latest_order_url()",
        "locator": "",
        "required_contents": {"must_include": ["x"]},
    }
    task = read_row(row("1", eval={"eval_types": ["program_html"], "program_html": [target]}))
    missing = PageFinding(url="http://a.example", problem=FindingProblem.NOT_CONFIGURED, detail="needs SETTING")
    score = await score_task(
        task, FinalState("", "http://a.example", {(0, 0): missing}), DIALECTS[DialectName.WEBARENA]
    )
    assert score.needs == (ScoringNeed.SHOP,)
    assert "SETTING" in score.checks[0].note
