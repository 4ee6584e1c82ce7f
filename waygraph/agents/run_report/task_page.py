"""The page of a task: what was asked and scored, the tree of a search, and each step with its window and action."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from waygraph.agents.run_report.html_page import render_page, render_table
from waygraph.agents.run_report.style import STYLE, duration, figure, money, numbers, verdict
from waygraph.agents.run_report.tree_view import TREE_STYLE, tree_view

if TYPE_CHECKING:
    from waygraph.agents.run_report.figures import TaskResult
    from waygraph.agents.runner.trace_reading import TaskTrace, TraceStep
    from waygraph.agents.search.tree import SearchTree

_BEFORE = "the window before this step"

_STYLE = f"""{STYLE}{TREE_STYLE}
section.step {{ display: grid; grid-template-columns: minmax(0, 22rem) minmax(0, 1fr); gap: 1.2rem; padding: 1rem 0;
  border-top: 1px solid var(--line); }}
section.step p {{ margin: .3rem 0; }} section.step h3 {{ margin: 0 0 .3rem; }}
pre {{ white-space: pre-wrap; background: var(--box); padding: .6rem; max-height: 24rem; overflow: auto;
  font-size: 12px; tab-size: 2; }}
div.scroll.checks td:nth-last-child(-n+3) {{ min-width: 9rem; }}
@media (max-width: 40rem) {{ section.step {{ grid-template-columns: minmax(0, 1fr); gap: .6rem; }} }}
"""


def task_page(result: TaskResult, trace: TaskTrace, *, back: str, tree: SearchTree | None = None) -> str:
    """Return the page of a task.

    Parameters
    ----------
    result
        The task and its score.
    trace
        Its trace.
    back
        URL of the page of the run, relative to this one.
    tree
        The tree of its search; None: its agent was none, or left none.

    Returns
    -------
    str
        HTML.
    """
    return render_page(f"Task {result.task_id}", "".join(_body(result, trace, back, tree)), style=_STYLE)


def _body(result: TaskResult, trace: TaskTrace, back: str, tree: SearchTree | None) -> Iterator[str]:
    yield f'<p><a href="{escape(back)}">All tasks</a></p>'
    reward = "" if result.score.reward is None else f", reward {result.score.reward:.3g}"
    if result.attempt is None:
        yield f"<p>{verdict(result.score.success, 'no result')}{escape(reward)}: {escape(result.problem)}</p>"
    else:
        task, answer = result.attempt.task, result.attempt.answer
        yield f"<p>{escape(task.intent)}</p><p>Start: {escape(', '.join(task.start_urls))}</p>"
        items = [(f"{answer.steps:,}", "steps"), (duration(answer.seconds), "time")]
        if answer.usage is not None:
            items.append((f"{answer.usage.input_tokens + answer.usage.output_tokens:,}", "tokens"))
            items.append((f"{answer.usage.calls:,}", "model calls"))
            if answer.usage.cost is not None:
                items.append((money(answer.usage.cost), "cost"))
        yield numbers(items)
        yield f"<p>{verdict(result.score.success)}{escape(reward)}; {escape(answer.ended)}. "
        yield f"Answer: {escape(answer.answer) or '<i>none</i>'}. Ended at {escape(answer.url)}</p>"
        if answer.problem:
            yield f'<p class="failure">{escape(answer.problem)}</p>'
    yield from _checks(result)
    if tree is not None:
        yield tree_view(tree, trace)
    yield "<h2>Trace</h2>"
    if not trace.steps:
        yield '<p class="note">There are no steps.</p>'
    for number, step in enumerate(trace.steps, start=1):
        yield _section(figure(trace.screenshot(step.screenshot), _BEFORE), _step(number, step, trace))
    if trace.last_screenshot:
        yield _section(figure(trace.screenshot(trace.last_screenshot), "the window at the end"), "<h3>End</h3>")


def _section(figure: str, text: str) -> str:
    return f'<section class="step">{figure}<div>{text}</div></section>'


def _checks(result: TaskResult) -> Iterator[str]:
    if result.score.checks:
        rows = [
            (
                check.subject,
                check.rule,
                "" if check.score is None else f"{check.score:.3g}",
                check.expected,
                check.found,
                check.note or (f"needs {check.need}" if check.need else ""),
            )
            for check in result.score.checks
        ]
        headers = ("subject", "rule", "score", "expected", "found", "note")
        yield f'<h2>Checks</h2><div class="scroll checks">{render_table(headers, rows, right=("score",))}</div>'


def _step(number: int, step: TraceStep, trace: TaskTrace) -> str:
    kind = "success" if step.status in ("done", "kept") else "failure"
    parts = [
        f"<h3>{number}. <code>{escape(step.action)}</code></h3>",
        f'<p><span class="{kind}">{escape(step.status)}</span> at {escape(step.url)}</p>',
        f"<p>{escape(step.message)}</p>",
    ]
    if step.thinking:
        parts.append(f"<details open><summary>thought</summary><p>{escape(step.thinking)}</p></details>")
    if step.usage is not None:
        cost = f", cost {money(step.usage.cost)}" if step.usage.cost is not None else ""
        tokens = step.usage.input_tokens + step.usage.output_tokens
        parts.append(f'<p class="note">{tokens:,} tokens in {step.usage.calls} calls{escape(cost)}</p>')
    if (path := trace.observation(step.observation)) is not None:
        text = path.read_text(encoding="utf-8", errors="replace")
        parts.append(f"<details><summary>page as text</summary><pre>{escape(text)}</pre></details>")
    return "".join(parts)
