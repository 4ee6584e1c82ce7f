"""Scores and reports of a stored run, whether its tasks were done once or repeatedly."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from waygraph.cli.display.repeats import print_repeats
from waygraph.cli.display.run_score import print_score, score_with_judge
from waygraph.cli.output import say, warn

if TYPE_CHECKING:
    from waygraph.agents.scoring.dialects import DialectName
    from waygraph.agents.scoring.repeats import RepeatedScore
    from waygraph.agents.scoring.run_folder import StoredRun
    from waygraph.agents.scoring.run_score import RunScore
    from waygraph.agents.tasks.where import Conditions
    from waygraph.core.settings import ChatSettings


def score_stored(
    folder: Path,
    judge: ChatSettings,
    *,
    dialect: DialectName | None = None,
    cassette: Path | None = None,
    conditions: Conditions | None = None,
    report: bool = False,
) -> RunScore | RepeatedScore:
    """Score a run, or each repeat of a repeated one.

    Parameters
    ----------
    folder
        Folder of the run.
    judge
        The judge; without a model, checks that need one are not made.
    dialect
        The dialect; None: the one that the run names.
    cassette
        Recording of the judge; None: the one beside the run.
    conditions
        Which tasks are scored, see `matching`; None: all.
    report
        Whether to write `report.html`.

    Returns
    -------
    RunScore or RepeatedScore
        The scores.

    Raises
    ------
    InvalidInput
        If the folder is no stored run, or no task meets the conditions.
    """
    from waygraph.agents.scoring.repeats import repeat_folders, summarise_repeats

    def score_one(path: Path) -> RunScore:
        from waygraph.agents.run_report.write import write_report
        from waygraph.agents.scoring.run_folder import RunFolder

        stored = RunFolder(path).read()
        if conditions:
            stored = _only(stored, conditions)
        score = asyncio.run(score_with_judge(path, stored, dialect, judge, cassette))
        if report:
            write_report(path, stored, score)
        return score

    repeats = repeat_folders(folder)
    if not repeats:
        return score_one(folder)
    result = summarise_repeats([score_one(path) for path in repeats])
    if report:
        from waygraph.agents.run_report.write import write_repeats_report

        write_repeats_report(folder, result, repeats)
    return result


def _only(stored: StoredRun, conditions: Conditions) -> StoredRun:
    """Return a run of the tasks that meet conditions. What is known of tasks without a result is their id alone."""
    from waygraph.agents.tasks.where import matching

    ids = {task.task_id for task in matching((each.task for each in stored.attempts.values()), conditions)}
    if missing := len(stored.manifest.tasks) - len(stored.attempts):
        warn(f"{missing} task(s) without a result are left out: their labels are not known.")
    kept = tuple(task_id for task_id in stored.manifest.tasks if task_id in ids)
    return replace(stored, manifest=stored.manifest.model_copy(update={"tasks": kept}))


def print_stored(result: RunScore | RepeatedScore, *, checks: bool) -> None:
    """Print scores.

    Parameters
    ----------
    result
        The scores.
    checks
        Whether to print every check with its evidence, too.
    """
    from waygraph.agents.scoring.repeats import RepeatedScore

    if not isinstance(result, RepeatedScore):
        print_score(result, checks=checks)
        return
    if checks:
        for number, score in enumerate(result.repeats, start=1):
            say(f"Repeat {number}")
            print_score(score, checks=True)
            say()
    print_repeats(result)
