"""The page of a run: success by site and by evaluator, steps, tokens, money and time, and its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from waygraph.agents.run_report.figures import (
    GroupFigures,
    TaskResult,
    evaluators_of,
    group_figures,
    grouped,
    site_of,
)
from waygraph.agents.run_report.html_page import render_page
from waygraph.agents.run_report.style import STYLE, duration, money, numbers, verdict
from waygraph.core.text import shortened

if TYPE_CHECKING:
    from waygraph.agents.scoring.repeats import RepeatedScore
    from waygraph.agents.scoring.run_folder import TaskRunManifest
    from waygraph.agents.scoring.run_score import RunScore

#: Longest part of an intent or an answer in the table of tasks, in characters.
_SHOWN = 160
_COLUMNS = ("tasks", "succeeded", "rate", "no reward", "steps", "seconds")


def run_page(
    title: str, manifest: TaskRunManifest, score: RunScore, results: Sequence[TaskResult], links: Mapping[str, str]
) -> str:
    """Return the page of a run.

    Parameters
    ----------
    title
        Plain text.
    manifest
        Manifest of the run.
    score
        Its scores.
    results
        Its tasks.
    links
        URLs of the pages of tasks, relative to this one, by id.

    Returns
    -------
    str
        HTML.
    """
    return render_page(title, "".join(_body(manifest, score, results, links)), style=STYLE)


def repeats_page(title: str, score: RepeatedScore, links: Sequence[str]) -> str:
    """Return the page of a repeated run.

    Parameters
    ----------
    title
        Plain text.
    score
        Its scores.
    links
        URLs of the pages of the repeats, relative to this one.

    Returns
    -------
    str
        HTML.
    """
    spread = [] if score.spread is None else [(f"{score.spread:.1%}", "standard deviation")]
    items = [
        (str(len(score.repeats)), "repeats"),
        (f"{score.mean_success:.1%}", "mean success"),
        *spread,
        (f"{score.lowest:.1%} to {score.highest:.1%}", "range"),
    ]
    undecided = f" {score.undecided:,} results have no reward and count as failures here." if score.undecided else ""
    rows = [
        f'<tr><td><a href="{escape(link)}">{number}</a><td class="number">{each.successes} of {each.tasks}'
        f'<td class="number">{rate:.1%}</tr>'
        for number, (link, each, rate) in enumerate(zip(links, score.repeats, score.success_rates, strict=True), 1)
    ]
    tasks = [
        f'<tr><td>{escape(task.task_id)}<td class="number">{task.successes} of {len(score.repeats)}</tr>'
        for task in score.tasks
    ]
    body = (
        f"{numbers(items)}<p class='note'>Each task was done {len(score.repeats)} times.{undecided}</p>"
        f"<h2>Repeats</h2>{_table(('repeat', 'succeeded', 'rate'), rows, right=('succeeded', 'rate'))}"
        f"<h2>Tasks</h2>{_table(('task', 'succeeded'), tasks, right=('succeeded',))}"
    )
    return render_page(title, body, style=STYLE)


def _body(
    manifest: TaskRunManifest, score: RunScore, results: Sequence[TaskResult], links: Mapping[str, str]
) -> Iterator[str]:
    every = group_figures("all", results)
    labels = ", ".join(f"{name} {value}" for name, value in manifest.labels.items())
    yield f"<p>{escape(labels)}. Begun {escape(manifest.created)}.</p>" if labels else ""
    items = [
        (f"{every.successes} of {every.tasks}", "tasks succeeded"),
        (every.success_rate, "rate of success"),
        (f"{every.steps:,}", "steps"),
        (duration(every.seconds), "time of all tasks"),
    ]
    if every.tokens:
        items.append((f"{every.tokens:,}", "tokens"))
    if every.cost is not None:
        items.append((money(every.cost), "cost"))
    yield numbers(items)
    if score.needs:
        lacking = ", ".join(f"{count} need {need}" for need, count in score.needs.items())
        yield f'<p class="note">{every.undecided} tasks have no reward: {escape(lacking)}. They may still be '
        yield "successes, so rates are ranges.</p>"
    if every.done < every.tasks:
        yield f'<p class="note">{every.tasks - every.done} tasks have no result, and are in none of the groups.</p>'
    yield f'<p class="note">Scored in the dialect {escape(score.dialect)}; tasks of {escape(score.task_file.name)}, '
    yield f"sha256 <code>{escape(score.task_file.sha256)}</code>.</p>"
    yield f"<h2>By site</h2>{_groups('site', grouped(results, site_of))}"
    yield f"<h2>By evaluator</h2>{_groups('evaluator', grouped(results, evaluators_of))}"
    sums = ", tokens and cost are sums" if every.tokens else ""
    yield f'<p class="note">Steps and seconds are means per task{sums}.</p>'
    yield f"<h2>Tasks</h2>{_tasks(results, links)}"


def _groups(name: str, groups: Sequence[GroupFigures]) -> str:
    # Agents without a model have neither, and models without configured prices have no cost.
    tokens = ("tokens",) if any(group.tokens for group in groups) else ()
    cost = ("cost",) if any(group.cost is not None for group in groups) else ()
    columns = (*_COLUMNS, *tokens, *cost)
    return _table((name, *columns), [_group_row(group, columns) for group in groups], right=columns)


def _group_row(group: GroupFigures, columns: Sequence[str]) -> str:
    cells = {
        "tasks": f"{group.tasks:,}",
        "succeeded": f"{group.successes:,}",
        "rate": group.success_rate,
        "no reward": f"{group.undecided:,}",
        "steps": f"{group.steps / group.done:.1f}",
        "seconds": f"{group.seconds / group.done:.1f}",
        "tokens": f"{group.tokens:,}",
        "cost": money(group.cost),
    }
    row = "".join(f'<td class="number">{escape(cells[column])}' for column in columns)
    return f"<tr><td>{escape(group.name)}{row}</tr>"


def _tasks(results: Sequence[TaskResult], links: Mapping[str, str]) -> str:
    headers = ("task", "result", "reward", "ended", "steps", "seconds", "intent", "answer")
    return _table(headers, [_task_row(result, links) for result in results], right=("reward", "steps", "seconds"))


def _task_row(result: TaskResult, links: Mapping[str, str]) -> str:
    link = links.get(result.task_id)
    name = escape(result.task_id)
    reward = "" if result.score.reward is None else f"{result.score.reward:.3g}"
    linked = f'<a href="{escape(link)}">{name}</a>' if link else name
    row = f'<tr><td>{linked}<td>{verdict(result.score.success)}<td class="number">{reward}'
    if result.attempt is None:
        return f'{row}<td>no result<td><td><td class="wide">{escape(shortened(result.problem, _SHOWN))}<td></tr>'
    answer, task = result.attempt.answer, result.attempt.task
    return (
        f'{row}<td>{escape(answer.ended)}<td class="number">{answer.steps:,}<td class="number">{answer.seconds:.1f}'
        f'<td class="wide">{escape(shortened(task.intent, _SHOWN))}'
        f'<td class="wide">{escape(shortened(answer.answer, _SHOWN))}</tr>'
    )


def _table(headers: Sequence[str], rows: Sequence[str], *, right: Sequence[str] = ()) -> str:
    """Return a table that scrolls where the window is too narrow. Rows are HTML, headers are plain texts."""
    body = "".join(rows)
    marks = [' class="number"' if header in right else "" for header in headers]
    head = "".join(f"<th{mark}>{escape(header)}" for header, mark in zip(headers, marks, strict=True))
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
