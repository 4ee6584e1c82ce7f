"""Conversion of the trace of a task to what the page of the service and the report of the run replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.runner.trace import TREE_FILE
from waygraph.agents.runner.trace_reading import TaskTrace, TraceEnd, TraceStep, has_trace, read_trace
from waygraph.agents.runner.tree_replay import read_tree, replay_tree, windows_of
from waygraph.core.errors import NotFound
from waygraph.core.replay_file import (
    ReplayCollector,
    ReplayContents,
    ReplayFile,
    ReplayOutcome,
    ReplayPage,
    ReplayStep,
    ReplayTree,
)

_UNFINISHED = frozenset({AttemptEnd.FAILED, AttemptEnd.BUDGET, AttemptEnd.STEP_LIMIT, AttemptEnd.EXHAUSTED})


def replay_of_task(folder: Path) -> ReplayFile:
    """Return one file with the trace of a task, its screenshots and the texts that the agent read.

    Parameters
    ----------
    folder
        Folder of the task (`RunFolder.task_folder`).

    Returns
    -------
    ReplayFile
        The file. It has no outcome if the attempt was killed. Malformed lines, and names of files outside the folder,
        are left out.

    Raises
    ------
    NotFound
        If the folder has no trace.
    """
    if not has_trace(folder):
        raise NotFound(f"There is no trace in {folder}", hint="Name a run, and a task that was begun.")
    contents = ReplayContents()
    walk = read_walk(folder, contents)
    return contents.file(
        "agent", title=walk.title, site=walk.site, facts=walk.facts, outcome=walk.outcome, steps=walk.steps,
        tree=walk.tree,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskWalk:
    """What a replay shows of a task; screenshots and texts are named by their keys.

    Attributes
    ----------
    title
        The task in plain words.
    site
        The sites of the task.
    facts
        Task, agent, and what was noticed besides.
    outcome
        How it ended; None: the attempt was killed, or there is no trace.
    steps
        Its steps.
    tree
        The tree of its search; None: there is none.
    """

    title: str
    site: str
    facts: dict[str, str]
    outcome: ReplayOutcome | None
    steps: list[ReplayStep]
    tree: ReplayTree | None


def read_walk(folder: Path, collector: ReplayCollector) -> TaskWalk:
    """Read the trace of a task.

    Parameters
    ----------
    folder
        Folder of the task.
    collector
        Takes its screenshots and texts.

    Returns
    -------
    TaskWalk
        The trace; without steps if there is none.
    """
    trace = read_trace(folder)
    search = read_tree(folder / TREE_FILE)
    tree = None
    if search is not None:
        windows = {number: collector.add_image_file(path) for number, path in windows_of(search, trace).items()}
        tree = replay_tree(search, windows)
    pages = [_page_of(step, trace, collector) for step in trace.steps]
    following = [*pages[1:], _last_page(trace, collector)]
    steps = [
        _replay_step(step, page, _page_after(step, after, trace, collector, tree))
        for step, page, after in zip(trace.steps, pages, following, strict=False)
    ]
    return TaskWalk(
        title=trace.start.intent or trace.start.task or folder.name,
        site=", ".join(site.key for site in trace.start.sites),
        facts={"task": trace.start.task, "agent": trace.start.agent}
        | ({"warning": " ".join(trace.warnings)} if trace.warnings else {}),
        outcome=_outcome(trace.end) if trace.end is not None else None,
        steps=steps,
        tree=tree,
    )


def _page_of(step: TraceStep, trace: TaskTrace, collector: ReplayCollector) -> ReplayPage:
    """Return the page that a step was decided on."""
    path = trace.observation(step.observation)
    return ReplayPage(
        node_id=step.state,
        url=step.url,
        screenshot=_screenshot(step.screenshot, trace, collector),
        text=collector.add_text_file(path) if path is not None else "",
    )


def _last_page(trace: TaskTrace, collector: ReplayCollector) -> ReplayPage | None:
    if trace.end is None or not (trace.end.url or trace.end.screenshot):
        return None
    return ReplayPage(url=trace.end.url, screenshot=_screenshot(trace.end.screenshot, trace, collector))


def _page_after(
    step: TraceStep, following: ReplayPage | None, trace: TaskTrace, collector: ReplayCollector, tree: ReplayTree | None
) -> ReplayPage | None:
    """Return the page after a step: the one of the next step, unless a search returned to another state for that."""
    if tree is None or not step.screenshot_after:
        return following
    shown = _screenshot(step.screenshot_after, trace, collector)
    result = step.details.get("result")
    led_to = next((node for node in tree.nodes if node.number == result), None)
    if led_to is None:
        return ReplayPage(screenshot=shown)
    return ReplayPage(url=led_to.url, title=led_to.title, screenshot=shown)


def _screenshot(name: str, trace: TaskTrace, collector: ReplayCollector) -> str:
    path = trace.screenshot(name)
    return collector.add_image_file(path) if path is not None else ""


def _replay_step(step: TraceStep, before: ReplayPage, after: ReplayPage | None) -> ReplayStep:
    return ReplayStep(
        action=step.action,
        status=step.status,
        message=step.message,
        before=before,
        after=after,
        thinking=step.thinking,
        usage=step.usage,
        details=step.details,
    )


def _outcome(end: TraceEnd) -> ReplayOutcome:
    return ReplayOutcome(
        status=end.ended or end.failure,
        good=False if end.failure or end.ended in _UNFINISHED else None,  # an answer may be wrong
        message=end.problem,
        answer=end.answer,
        url=end.url,
    )
