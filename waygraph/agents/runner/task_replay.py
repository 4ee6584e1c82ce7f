"""Conversion of the trace of a task to one file that the page of the service replays."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.runner.trace import TRACE_FILE
from waygraph.core.errors import InvalidInput, NotFound
from waygraph.core.replay_file import ReplayContents, ReplayFile, ReplayOutcome, ReplayPage, ReplayStep
from waygraph.core.schemas import UsageModel

log = logging.getLogger(__name__)

#: A trace names files of its own folder only, whoever wrote it.
_SCREENSHOT = re.compile(r"screenshots/[0-9A-Za-z_-]+\.(?:jpg|jpeg|png)")
_OBSERVATION = re.compile(r"[0-9a-f]+")


class _Line(BaseModel):
    # Fields that later versions add do not matter here.
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class _Start(_Line):
    kind: Literal["start"]
    task: str = ""
    intent: str = ""
    agent: str = ""
    mapped_site: str = ""


class _Step(_Line):
    kind: Literal["step"]
    state: str = ""
    url: str = ""
    action: str = ""
    status: str = ""
    message: str = ""
    thinking: str = ""
    usage: UsageModel | None = None
    details: dict[str, JsonValue] = {}
    observation: str = ""
    screenshot: str | None = None


class _End(_Line):
    kind: Literal["end"]
    ended: str = ""
    answer: str = ""
    url: str = ""
    problem: str = ""
    failure: str = ""
    screenshot: str | None = None


_TRACE_LINE: TypeAdapter[_Start | _Step | _End] = TypeAdapter(
    Annotated[_Start | _Step | _End, Field(discriminator="kind")]
)


def replay_of_task(folder: Path) -> ReplayFile:
    """Return one file with the trace of a task, its screenshots and the texts that the agent read.

    Parameters
    ----------
    folder
        Folder of the task (`RunFolder.task_folder`).

    Returns
    -------
    ReplayFile
        The file. It has no outcome if the attempt was killed.

    Raises
    ------
    NotFound
        If the folder has no trace.
    InvalidInput
        If the trace cannot be read, or names files outside its folder.
    """
    lines = _read_trace(folder / TRACE_FILE)
    start = next((line for line in lines if isinstance(line, _Start)), _Start(kind="start"))
    steps = [line for line in lines if isinstance(line, _Step)]
    end = next((line for line in reversed(lines) if isinstance(line, _End)), None)
    contents = ReplayContents()
    pages = [_page_of(step, folder, contents) for step in steps]
    following = [*pages[1:], _last_page(end, folder, contents)]
    return contents.file(
        "agent",
        title=start.intent or start.task or folder.name,
        site=start.mapped_site,
        facts={"task": start.task, "agent": start.agent},
        outcome=_outcome(end) if end is not None else None,
        steps=[_replay_step(*each) for each in zip(steps, pages, following, strict=False)],
    )


def _read_trace(file: Path) -> list[_Start | _Step | _End]:
    try:
        written = file.read_bytes().splitlines()
    except FileNotFoundError as error:
        raise NotFound(f"There is no trace: {file}", hint="Name a run, and a task that was begun.") from error
    except OSError as error:
        raise InvalidInput(f"Cannot read {file}: {error.strerror}.", hint="Name a file that can be read.") from error
    lines = []
    for number, line in enumerate(written, start=1):
        try:
            lines.append(_TRACE_LINE.validate_json(line))
        except ValidationError as error:
            if number == len(written):  # an attempt that was killed while it wrote
                log.info("the last line of %s is incomplete", file)
                break
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidInput(
                f"{file}, line {number}: {where}: {first['msg']}", hint="The format: docs/tasks.md"
            ) from error
    return lines


def _page_of(step: _Step, folder: Path, contents: ReplayContents) -> ReplayPage:
    """Return the page that a step was decided on."""
    text = ""
    if step.observation:
        if not _OBSERVATION.fullmatch(step.observation):
            raise _outside(step.observation)
        text = (_read_file(folder / "observations" / f"{step.observation}.txt") or b"").decode("utf-8", "replace")
    screenshot = _screenshot(step.screenshot, folder, contents)
    return ReplayPage(node_id=step.state, url=step.url, screenshot=screenshot, text=contents.add_text(text))


def _last_page(end: _End | None, folder: Path, contents: ReplayContents) -> ReplayPage | None:
    if end is None or not (end.url or end.screenshot):
        return None
    return ReplayPage(url=end.url, screenshot=_screenshot(end.screenshot, folder, contents))


def _screenshot(name: str | None, folder: Path, contents: ReplayContents) -> str:
    if not name:
        return ""
    if not _SCREENSHOT.fullmatch(name):
        raise _outside(name)
    content = _read_file(folder / name)
    return contents.add_image(content) if content is not None else ""


def _read_file(file: Path) -> bytes | None:
    """Return the content of a file of the trace; None if it was removed."""
    try:
        return file.read_bytes()
    except OSError as error:
        log.info("left out of the replay: %s: %s", file, error.strerror)
        return None


def _outside(name: str) -> InvalidInput:
    return InvalidInput(f"The trace names '{name}', which is no file of its folder.", hint="The format: docs/tasks.md")


def _replay_step(step: _Step, before: ReplayPage, after: ReplayPage | None) -> ReplayStep:
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


def _outcome(end: _End) -> ReplayOutcome:
    is_unfinished: Sequence[str] = (AttemptEnd.FAILED, AttemptEnd.BUDGET, AttemptEnd.STEP_LIMIT, AttemptEnd.EXHAUSTED)
    return ReplayOutcome(
        status=end.ended or end.failure,
        good=False if end.failure or end.ended in is_unfinished else None,  # an answer may be wrong
        message=end.problem,
        answer=end.answer,
        url=end.url,
    )
