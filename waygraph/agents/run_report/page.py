"""The content of reports: success by site and by evaluator, steps, tokens, money and time, tasks and their traces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waygraph.agents.run_report.traces import RunTraces
from waygraph.agents.scoring.figures import GroupFigures, site_of
from waygraph.core.report_file import ReportFile, size_in_report
from waygraph.core.text import shortened

if TYPE_CHECKING:
    from waygraph.agents.scoring.checks import TaskCheck, TaskScore
    from waygraph.agents.scoring.repeats import RepeatedScore
    from waygraph.agents.scoring.run_folder import StoredAttempt, StoredRun, TaskRunManifest
    from waygraph.agents.scoring.run_score import RunScore
    from waygraph.core.schemas import UsageModel

#: Largest size of the rows of tasks, without their traces, and most tasks of a repeated run.
#: `waygraph score --json` has all tasks.
MAX_ROWS_BYTES, MAX_TASKS = 2 * 2**20, 2_000
_MAX_INTENT, _MAX_ANSWER, _MAX_PROBLEM = 1_000, 2_000, 600


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task of a run, with its score.

    Attributes
    ----------
    task_id
        Id of the task.
    score
        Its score.
    attempt
        What the agent left; None: the task has no result.
    problem
        Why it has none, as far as that is known.
    """

    task_id: str
    score: TaskScore
    attempt: StoredAttempt | None
    problem: str = ""


def task_results(run: StoredRun, score: RunScore) -> tuple[TaskResult, ...]:
    """Return the tasks of a run with their scores, in the order of the run.

    Parameters
    ----------
    run
        The run.
    score
        Its scores.

    Returns
    -------
    tuple of TaskResult
        The tasks.
    """
    return tuple(
        TaskResult(each.task_id, each, run.attempts.get(each.task_id), run.problems.get(each.task_id, ""))
        for each in score.scores
    )


def run_page(
    name: str, manifest: TaskRunManifest, score: RunScore, results: Sequence[TaskResult], traces: RunTraces
) -> ReportFile:
    """Return the report of a run.

    Parameters
    ----------
    name
        Name of the run.
    manifest
        Its manifest.
    score
        Its scores.
    results
        Its tasks.
    traces
        What its agents saw and did.

    Returns
    -------
    ReportFile
        The report.
    """
    rows = _rows(results)
    content = {
        "name": name,
        "created": manifest.created,
        "labels": manifest.labels,
        "scorers": score.scorers,
        "interval": score.interval,
        "task_file": {"name": score.task_file.name, "sha256": score.task_file.sha256},
        "needs": {need.value: count for need, count in score.needs.items()},
        "all": _figures(score.figures),
        "groups": {kind: [_figures(group) for group in groups] for kind, groups in score.groups.items()},
        "tasks": [{**row, "replay": traces.replays.get(row["id"])} for row in rows],
        "texts": traces.texts,
        "left_out": {**traces.left_out, "tasks": len(results) - len(rows)},
    }
    return ReportFile("agents", f"Run {name}", content, traces.images)


def repeats_page(name: str, score: RepeatedScore, links: Sequence[str]) -> ReportFile:
    """Return the report of a repeated run.

    Parameters
    ----------
    name
        Name of the run.
    score
        Its scores.
    links
        URLs of the reports of the repeats, relative to this one.

    Returns
    -------
    ReportFile
        The report.
    """
    content = {
        "name": name,
        "mean_success": score.mean_success,
        "spread": score.spread,
        "lowest": score.lowest,
        "highest": score.highest,
        "undecided": score.undecided,
        "repeats": [
            {"link": link, "successes": each.successes, "tasks": each.tasks}
            for link, each in zip(links, score.repeats, strict=True)
        ],
        "tasks": [{"id": task.task_id, "successes": task.successes} for task in score.tasks[:MAX_TASKS]],
        "left_out": max(0, len(score.tasks) - MAX_TASKS),
    }
    return ReportFile("repeats", f"Run {name}", content)


def _rows(results: Sequence[TaskResult]) -> list[dict[str, Any]]:
    """Return the rows of the first tasks, as many as fit."""
    rows, size = [], 0
    for result in results:
        row = _task(result)
        size += size_in_report(row)
        if size > MAX_ROWS_BYTES:
            break
        rows.append(row)
    return rows


def _task(result: TaskResult) -> dict[str, Any]:
    shown = {
        "id": result.task_id,
        "success": result.score.success,
        "reward": result.score.reward,
        "checks": [_check(check) for check in result.score.checks],
    }
    if result.attempt is None:
        return {**shown, "problem": shortened(result.problem, _MAX_PROBLEM), "result": None}
    task, answer = result.attempt.task, result.attempt.answer
    return {
        **shown,
        "problem": shortened(f"{answer.problem} {_refused(answer.refused)}".strip(), _MAX_PROBLEM),
        "result": {
            "intent": shortened(task.intent, _MAX_INTENT),
            "start_urls": task.start_urls,
            "site": site_of(task),
            "ended": answer.ended.value,
            "answer": shortened(answer.answer, _MAX_ANSWER),
            "url": shortened(answer.url, _MAX_INTENT),
            "steps": answer.steps,
            **_finite({"seconds": answer.seconds, **_usage(answer.usage)}),
        },
    }


def _refused(count: int) -> str:
    return f"{count} documents or connections outside of the sites of the task were refused." if count else ""


def _usage(usage: UsageModel | None) -> dict[str, Any]:
    if usage is None:
        return {"tokens": 0, "calls": 0, "cost": None}
    return {"tokens": usage.input_tokens + usage.output_tokens, "calls": usage.calls, "cost": usage.cost}


def _check(check: TaskCheck) -> dict[str, Any]:
    return {
        "subject": check.subject,
        "rule": check.rule,
        "score": check.score,
        "expected": check.expected,
        "found": check.found,
        "note": check.note or (f"needs {check.need.value}" if check.need else ""),
    }


def _figures(group: GroupFigures) -> dict[str, Any]:
    return _finite(group.model_dump())


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers that JSON can hold: runs of others may have a NaN as a time or a price."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }
