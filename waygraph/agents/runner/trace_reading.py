"""Reading of traces, for reports and exports."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from waygraph.agents.runner.network_recording import NETWORK_FILE
from waygraph.agents.runner.trace import OBSERVATIONS, SCREENSHOTS, TRACE_FILE
from waygraph.core.schemas import UsageModel

#: Names become paths, and a trace may be a file of others.
_NAME = re.compile(r"[0-9a-f]{8,64}")


class TraceStep(BaseModel):
    """A step of a trace; further fields of its line are not read.

    Attributes
    ----------
    url
        URL of the page that it was decided on.
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
    observation
        Name of the text of the page.
    screenshot
        Name of its screenshot; empty: there is none.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str = ""
    action: str = ""
    status: str = ""
    message: str = ""
    thinking: str = ""
    usage: UsageModel | None = None
    observation: str = ""
    screenshot: str = ""


@dataclass(frozen=True, slots=True)
class TaskTrace:
    """The trace of a task.

    Attributes
    ----------
    folder
        Folder of the task.
    steps
        Its steps.
    last_screenshot
        Name of the screenshot at the end; empty: there is none.
    problem
        Why the attempt failed or ended early; empty otherwise.
    """

    folder: Path
    steps: tuple[TraceStep, ...] = ()
    last_screenshot: str = ""
    problem: str = ""

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
    steps, last, problem = [], "", ""
    for line in lines:
        try:
            values = json.loads(line)
            if values["kind"] == "step":
                steps.append(TraceStep.model_validate(values))
            elif values["kind"] == "end":
                last, problem = str(values.get("screenshot") or ""), str(values.get("problem") or "")
        except (ValueError, ValidationError, KeyError, TypeError):
            continue
    return TaskTrace(folder, tuple(steps), last, problem)
