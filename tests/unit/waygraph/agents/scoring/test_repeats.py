"""Repeated runs: where they are stored, and what their scores add up to."""

import pytest

from waygraph.agents.scoring.checks import TaskCheck, combine_checks
from waygraph.agents.scoring.dialects import DialectName
from waygraph.agents.scoring.repeats import plan_repeats, repeat_folders, summarise_repeats
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskRunManifest
from waygraph.agents.scoring.run_score import summarise_scores
from waygraph.core.errors import InvalidInput

FILE = StoredTaskFile(name="t.json", sha256="0")


def run_score(**rewards):
    scores = tuple(
        combine_checks(task_id, DialectName.WEBARENA, [TaskCheck(evaluator=None, rule="r", subject="s", score=reward)])
        for task_id, reward in rewards.items()
    )
    return summarise_scores(DialectName.WEBARENA, FILE, scores, {})


def test_mean_and_spread_are_those_of_the_rates_of_success():
    result = summarise_repeats([run_score(a=1.0, b=0.0), run_score(a=1.0, b=1.0), run_score(a=0.0, b=0.0)])
    assert result.success_rates == (0.5, 1.0, 0.0)
    assert (result.mean_success, result.spread, result.lowest, result.highest) == (0.5, 0.5, 0.0, 1.0)
    assert [(task.task_id, task.successes, task.scored) for task in result.tasks] == [("a", 2, 3), ("b", 1, 3)]
    assert result.undecided == 0


def test_one_repeat_has_no_spread():
    assert summarise_repeats([run_score(a=1.0)]).spread is None


def store(path):
    RunFolder(path).write_manifest(TaskRunManifest(created="2026", task_file=FILE, tasks=("a",)))


def test_a_run_without_repeats_is_its_own_folder(tmp_path):
    assert plan_repeats(tmp_path, 1) == (tmp_path,)
    store(tmp_path)
    assert plan_repeats(tmp_path, 1) == (tmp_path,)
    assert repeat_folders(tmp_path) == ()
    with pytest.raises(InvalidInput, match="without repeats"):
        plan_repeats(tmp_path, 2)


def test_repeats_can_be_added_and_none_is_left_out(tmp_path):
    planned = plan_repeats(tmp_path, 10)
    for path in planned:
        store(path)
    (tmp_path / "repeats" / "11").mkdir()  # it was killed before its manifest
    (tmp_path / "repeats" / "notes").mkdir()
    assert repeat_folders(tmp_path) == planned
    assert [path.name for path in planned][-2:] == ["9", "10"]
    assert plan_repeats(tmp_path, 12)[:10] == planned
    for fewer in (1, 9):
        with pytest.raises(InvalidInput, match="10 repeats"):
            plan_repeats(tmp_path, fewer)
