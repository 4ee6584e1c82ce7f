"""Conversion of the trace of a task to one file that the page of the service replays."""

from __future__ import annotations

from pathlib import Path

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.runner.trace_reading import TaskTrace, TraceEnd, TraceStep, has_trace, read_trace
from waygraph.core.errors import NotFound
from waygraph.core.replay_file import ReplayContents, ReplayFile, ReplayOutcome, ReplayPage, ReplayStep

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
    trace = read_trace(folder)
    contents = ReplayContents()
    pages = [_page_of(step, trace, contents) for step in trace.steps]
    following = [*pages[1:], _last_page(trace, contents)]
    return contents.file(
        "agent",
        title=trace.start.intent or trace.start.task or folder.name,
        site=", ".join(trace.start.mapped_sites),
        facts={"task": trace.start.task, "agent": trace.start.agent},
        outcome=_outcome(trace.end) if trace.end is not None else None,
        steps=[_replay_step(*each) for each in zip(trace.steps, pages, following, strict=False)],
    )


def _page_of(step: TraceStep, trace: TaskTrace, contents: ReplayContents) -> ReplayPage:
    """Return the page that a step was decided on."""
    path = trace.observation(step.observation)
    text = path.read_text(encoding="utf-8", errors="replace") if path is not None else ""
    screenshot = _screenshot(step.screenshot, trace, contents)
    return ReplayPage(node_id=step.state, url=step.url, screenshot=screenshot, text=contents.add_text(text))


def _last_page(trace: TaskTrace, contents: ReplayContents) -> ReplayPage | None:
    if trace.end is None or not (trace.end.url or trace.end.screenshot):
        return None
    return ReplayPage(url=trace.end.url, screenshot=_screenshot(trace.end.screenshot, trace, contents))


def _screenshot(name: str, trace: TaskTrace, contents: ReplayContents) -> str:
    path = trace.screenshot(name)
    return contents.add_image(path.read_bytes()) if path is not None else ""


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
