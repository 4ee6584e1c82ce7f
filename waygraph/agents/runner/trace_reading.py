"""Reading of traces, for reports, exports and replays."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from waygraph.agents.runner.network_recording import NETWORK_FILE
from waygraph.agents.runner.trace import OBSERVATIONS, SCREENSHOTS, TRACE_FILE
from waygraph.core.schemas import UsageModel

#: Names become paths, and a trace may be a file of others.
_NAME = re.compile(r"[0-9a-f]{8,64}")


class _TraceLine(BaseModel):
    # Fields that later versions add do not matter here.
    model_config = ConfigDict(frozen=True, extra="ignore")


class TraceSite(_TraceLine):
    """A site of a task: its name in the task file, its key, its URL, and whether its map may be asked."""

    name: str = ""
    key: str = ""
    url: str = ""
    is_mapped: bool = False


class TraceStart(_TraceLine):
    """The line that begins a trace.

    Attributes
    ----------
    task
        Id of the task.
    intent
        The task in plain words.
    agent
        The agent.
    sites
        The sites of the task.
    """

    task: str = ""
    intent: str = ""
    agent: str = ""
    sites: tuple[TraceSite, ...] = ()


class TraceStep(_TraceLine):
    """A step of a trace.

    Attributes
    ----------
    state
        Node id of the page that it was decided on.
    url
        URL of that page.
    action
        The action as text.
    status
        What became of it.
    message
        What the agent was told.
    thinking
        Why, in the model's words.
    usage
        What its model calls took.
    details
        What else the agent records.
    observation
        Name of the text of the page.
    screenshot
        Name of its screenshot; empty: there is none.
    screenshot_after
        Name of the screenshot after the action; empty: there is none.
    """

    state: str = ""
    url: str = ""
    action: str = ""
    status: str = ""
    message: str = ""
    thinking: str = ""
    usage: UsageModel | None = None
    details: dict[str, JsonValue] = {}
    observation: str = ""
    screenshot: str = ""
    screenshot_after: str = ""


class TraceEnd(_TraceLine):
    """The line that ends a trace.

    Attributes
    ----------
    ended
        How the agent ended (`AttemptEnd`); empty: the attempt failed.
    failure
        Why the attempt failed (`AttemptFailure`); empty: it did not.
    answer
        The answer.
    url
        Where the agent ended.
    problem
        Why the attempt failed or ended early; empty otherwise.
    screenshot
        Name of the screenshot at the end; empty: there is none.
    """

    ended: str = ""
    failure: str = ""
    answer: str = ""
    url: str = ""
    problem: str = ""
    screenshot: str = ""


@dataclass(frozen=True, slots=True)
class TaskTrace:
    """The trace of a task.

    Attributes
    ----------
    folder
        Folder of the task.
    start
        Its beginning.
    steps
        Its steps.
    end
        Its end; None: the attempt was killed, or goes on.
    warnings
        What was noticed besides: sessions that seem to have ended.
    """

    folder: Path
    start: TraceStart = field(default_factory=TraceStart)
    steps: tuple[TraceStep, ...] = ()
    end: TraceEnd | None = None
    warnings: tuple[str, ...] = ()

    @property
    def last_screenshot(self) -> str:
        """Name of the screenshot at the end; empty: there is none."""
        return self.end.screenshot if self.end is not None else ""

    @property
    def problem(self) -> str:
        """Why the attempt failed or ended early; empty otherwise."""
        return self.end.problem if self.end is not None else ""

    @property
    def network(self) -> Path | None:
        """File of the requests; None: there is none."""
        path = self.folder / NETWORK_FILE
        return path if path.is_file() else None

    def screenshot(self, name: str) -> Path | None:
        """Return the file of a screenshot; None: there is none."""
        return self._file(SCREENSHOTS, name, ".jpg")

    def observation(self, name: str) -> Path | None:
        """Return the file of the text of a page; None: there is none."""
        return self._file(OBSERVATIONS, name, ".txt")

    def _file(self, part: str, name: str, ending: str) -> Path | None:
        path = self.folder / part / f"{name}{ending}"
        return path if _NAME.fullmatch(name) and path.is_file() else None


def has_trace(folder: Path) -> bool:
    """Return whether the folder of a task has a trace."""
    return (folder / TRACE_FILE).is_file()


def read_trace(folder: Path) -> TaskTrace:
    """Read the trace of a task.

    Parameters
    ----------
    folder
        Folder of the task.

    Returns
    -------
    TaskTrace
        The trace; empty if there is none, as in runs of others. Lines that are malformed, as the last one of an attempt
        that was killed, are left out.
    """
    try:
        lines = (folder / TRACE_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return TaskTrace(folder)
    start, steps, end, warnings = TraceStart(), [], None, []
    for line in lines:
        try:
            values = json.loads(line)
            match values["kind"]:
                case "start":
                    start = TraceStart.model_validate(values)
                case "step":
                    steps.append(TraceStep.model_validate(values))
                case "warning":
                    warnings.append(str(values["problem"]))
                case "end":
                    end = TraceEnd.model_validate(values)
        except (ValueError, ValidationError, KeyError, TypeError):
            continue
    return TaskTrace(folder, start, tuple(steps), end, tuple(warnings))
