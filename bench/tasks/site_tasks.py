"""The tasks of this benchmark, with what is needed to replay them.

A file holds the tasks of one site, or tasks over several sites of one split (`across_dev.json`). A row has
WebArena's fields, and three more:

- `kind`: what the task asks for, see `KINDS`.
- `replay`: the end of a run that does the task, that of a plausible run that does not, the way back if the task changes
  data, and texts that pages of the site show, or do not, so that the reference stays true.
- `steps`, of find-a-page tasks: the shortest clicks from the start page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from waygraph.agents.tasks.task_file import TaskFile, read_task_file

FOLDER = Path(__file__).parent
FIND_A_PAGE = "find-a-page"
CHANGE_SOMETHING = "change-something"
KINDS = (FIND_A_PAGE, "read-a-value", "compare-across-pages", CHANGE_SOMETHING, "impossible")
#: Sites by split. What is chosen or tuned on tasks is chosen on `dev`.
SPLITS = {
    "dev": ("demo_shop", "fossil", "wagtail", "node_red"),
    "test": ("python_docs", "gentelella", "dokuwiki", "jupyterlab"),
}


class _Field(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReplayedStep(_Field):
    """A step of a replay.

    Attributes
    ----------
    on : Playwright selector of the element.
    do : what is done with it. `send` is a click, and waits for the answer to the request that changes data; `see` waits
        until the element is visible.
    value : the text that is filled in, the key that is pressed, or the option that is selected.
    """

    on: str
    do: Literal["click", "double-click", "send", "fill", "press", "select", "see"] = "click"
    value: str = ""


class ReplayedEnd(_Field):
    """The end of a run: an answer, or a page and steps in it. `site` is the page's, by default the task's first."""

    answer: str = ""
    site: str = ""
    path: str = ""
    steps: tuple[ReplayedStep, ...] = ()


class PageText(_Field):
    """A text on a page of a site, by default of the task's first."""

    site: str = ""
    path: str
    text: str


class TaskReplay(_Field):
    """The field `replay` of a row.

    Attributes
    ----------
    right : the end of a run that does the task.
    wrong : the end of a plausible run that does not.
    undo : steps that give the data that either end changes its first value, whatever value it has. Without them, the
        data is as it was once the server has been started again.
    shown : texts that pages of the site show.
    absent : texts that pages of the site do not show.
    """

    right: ReplayedEnd
    wrong: ReplayedEnd
    undo: tuple[ReplayedEnd, ...] = ()
    shown: tuple[PageText, ...] = ()
    absent: tuple[PageText, ...] = ()


class ClickStep(_Field):
    """A click of the shortest way to a page.

    Attributes
    ----------
    role : role of the element, as an observation has it.
    name : name of the element; empty: it has none.
    nth : number among the elements with this role and name, from 0.
    double : whether to click twice.
    """

    role: str
    name: str
    nth: int = 0
    double: bool = False

    def __str__(self) -> str:
        return f"{self.role} '{self.name}'" + (f" number {self.nth + 1}" if self.nth else "")


#: Task files over several sites, by split.
ACROSS = {"dev": FOLDER / "across_dev.json", "test": FOLDER / "across_test.json"}


@dataclass(frozen=True)
class SiteTasks:
    """The tasks of a file, with URLs in place of the placeholders.

    Attributes
    ----------
    file : the task file.
    kinds : kinds by task.
    replays : replays by task.
    ways : the shortest clicks by task, for find-a-page tasks.
    """

    file: TaskFile
    kinds: dict[str, str]
    replays: dict[str, TaskReplay]
    ways: dict[str, tuple[ClickStep, ...]]


def read_site(site: str, base_url: str) -> SiteTasks:
    """Read the tasks of a site that is served at `base_url`."""
    return read_tasks(FOLDER / f"{site}.json", {site: base_url})


def read_tasks(path: Path, urls: Mapping[str, str]) -> SiteTasks:
    """Read the tasks of a file; `urls` are those of all their sites, by name."""
    file = read_task_file(path, {f"__{site.upper()}__": url for site, url in urls.items()})
    assert not file.problems, file.problems
    rows = {str(row["task_id"]): row for row in json.loads(path.read_text(encoding="utf-8"))}
    return SiteTasks(
        file,
        {key: row["kind"] for key, row in rows.items()},
        {key: TaskReplay.model_validate(row["replay"]) for key, row in rows.items()},
        {
            key: tuple(ClickStep.model_validate(step) for step in row["steps"])
            for key, row in rows.items()
            if "steps" in row
        },
    )


def sites_of(path: Path) -> list[str]:
    """Return the names of all sites that the tasks of a file are over."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return sorted({site for row in rows for site in row["sites"]})
