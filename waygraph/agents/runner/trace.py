"""Trace of a task: what the agent saw and did, written while it acts.

    TASK/trace.jsonl              one JSON object per line: `start`, a `step` per action, `end`
    TASK/observations/HASH.txt    texts that the agent saw; equal texts are one file
    TASK/screenshots/HASH.jpg     windows that it saw; equal images are one file
    TASK/tree.json                of a tree search: its tree, see `waygraph.agents.search.tree`

A trace is written line by line, so it also shows how far an attempt came that was killed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from waygraph.core.text import replace_surrogates

if TYPE_CHECKING:
    from pydantic import JsonValue

    from waygraph.agents.observation.page_observation import PageObservation
    from waygraph.agents.run_record import AgentStep

TRACE_FILE, TREE_FILE = "trace.jsonl", "tree.json"
OBSERVATIONS, SCREENSHOTS = "observations", "screenshots"
_HASH_DIGITS = 16


class TraceWriter:
    """Writes the trace of one attempt; a trace of an earlier attempt is replaced.

    Parameters
    ----------
    folder
        Folder of the task.
    """

    def __init__(self, folder: Path) -> None:
        self._observations = folder / OBSERVATIONS
        self._screenshots = folder / SCREENSHOTS
        self._observations.mkdir(parents=True, exist_ok=True)
        self._file = folder / TRACE_FILE
        self._file.write_text("", encoding="utf-8")
        self.steps = 0
        """Number of actions that were written; answers that are no action do not count."""

    def write(self, kind: str, **values: JsonValue) -> None:
        """Add a line.

        Parameters
        ----------
        kind
            What the line is about.
        **values
            Its further fields.
        """
        line = json.dumps({"kind": kind, **values}, ensure_ascii=False)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(replace_surrogates(line) + "\n")

    def store_screenshot(self, jpeg: bytes) -> str:
        """Store an image, once if it is the same as an earlier one.

        Parameters
        ----------
        jpeg
            The image.

        Returns
        -------
        str
            Its name: the file without its ending.
        """
        name = hashlib.sha256(jpeg).hexdigest()[:_HASH_DIGITS]
        self._screenshots.mkdir(exist_ok=True)
        path = self._screenshots / f"{name}.jpg"
        if not path.exists():
            path.write_bytes(jpeg)
        return name

    async def write_step(
        self, step: AgentStep, observation: PageObservation, screenshot: str = "", screenshot_after: str = ""
    ) -> None:
        """Add an action, what it was decided on, and what it led to; a `StepListener`.

        Parameters
        ----------
        step
            The action.
        observation
            The page, whose text is stored.
        screenshot
            Name of its screenshot; empty: there is none.
        screenshot_after
            Name of the screenshot after the action; empty: there is none.
        """
        text = replace_surrogates(observation.text)
        name = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
        seen = self._observations / f"{name}.txt"
        if not seen.exists():
            seen.write_text(text, encoding="utf-8")
        usage = step.usage.model_dump() if step.usage is not None else None
        values = {**asdict(step), "details": dict(step.details), "usage": usage}
        self.write("step", observation=name, screenshot=screenshot, screenshot_after=screenshot_after, **values)
        self.steps += step.status != "unparsed"
