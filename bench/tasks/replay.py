"""The tasks of this benchmark, and the replay that shows that each can be done and can be failed.

A row has WebArena's fields, a `kind`, and a `replay`: the end of a run that does the task, that of a plausible run that
does not, and texts that pages of the site show, or do not, so that the reference stays true.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.async_api import TimeoutError as PlaywrightTimeout
from pydantic import BaseModel, ConfigDict

from waygraph.agents.scoring.dialects import DIALECTS, DialectName
from waygraph.agents.scoring.final_state import FinalState
from waygraph.agents.scoring.page_recorder import record_findings
from waygraph.agents.scoring.score import score_task
from waygraph.agents.tasks.task import Task
from waygraph.agents.tasks.task_file import TaskFile, read_task_file

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

FOLDER = Path(__file__).parent
KINDS = ("find-a-page", "read-a-value", "compare-across-pages", "impossible")
#: Sites by split. What is chosen or tuned on tasks is chosen on `dev`.
SPLITS = {"dev": ("demo_shop", "fossil"), "test": ("python_docs", "gentelella")}
#: Longest wait for a text that a page shows, in milliseconds.
SHOWN_CAP_MS = 10_000
#: All text of a page, of hidden parts too, with single spaces.
_TEXT = "() => document.documentElement.textContent.replace(/\\s+/g, ' ')"


class _Replayed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReplayedEnd(_Replayed):
    """The end of a run: an answer, or a page and clicks in it (Playwright selectors)."""

    answer: str = ""
    path: str = ""
    clicks: tuple[str, ...] = ()


class PageText(_Replayed):
    """A text on a page of the site."""

    path: str
    text: str


class TaskReplay(_Replayed):
    """The field `replay` of a row."""

    right: ReplayedEnd
    wrong: ReplayedEnd
    shown: tuple[PageText, ...] = ()
    absent: tuple[PageText, ...] = ()


@dataclass(frozen=True)
class SiteTasks:
    """The tasks of a site, with URLs in place of the placeholder.

    Attributes
    ----------
    file : the task file.
    kinds : kinds by task.
    replays : replays by task.
    """

    file: TaskFile
    kinds: dict[str, str]
    replays: dict[str, TaskReplay]


def read_site(site: str, base_url: str) -> SiteTasks:
    """Read the tasks of a site that is served at `base_url`."""
    path = FOLDER / f"{site}.json"
    file = read_task_file(path, {f"__{site.upper()}__": base_url})
    assert not file.problems, file.problems
    rows = {str(row["task_id"]): row for row in json.loads(path.read_text(encoding="utf-8"))}
    return SiteTasks(
        file,
        {key: row["kind"] for key, row in rows.items()},
        {key: TaskReplay.model_validate(row["replay"]) for key, row in rows.items()},
    )


async def check_task(context: BrowserContext, base_url: str, task: Task, replay: TaskReplay) -> list[str]:
    """Replay a task in a browser and return what is wrong with it; an empty list: nothing."""
    base = base_url.rstrip("/")
    problems = []
    page = await context.new_page()
    try:
        for each in replay.shown:
            await page.goto(f"{base}/{each.path}")
            try:
                await page.wait_for_function(f"text => ({_TEXT})().includes(text)", arg=each.text, timeout=SHOWN_CAP_MS)
            except PlaywrightTimeout:
                problems.append(f"/{each.path} lacks '{each.text}'")
        for each in replay.absent:
            await page.goto(f"{base}/{each.path}")
            await page.wait_for_load_state("networkidle")
            if each.text in await page.evaluate(_TEXT):
                problems.append(f"/{each.path} shows '{each.text}'")
        for name, end in (("right", replay.right), ("wrong", replay.wrong)):
            if end.path:
                await page.goto(f"{base}/{end.path}")
            for selector in end.clicks:
                await page.click(selector)
            state = FinalState(end.answer, page.url, await record_findings(task, page))
            problems += await end_problems(task, name, state)
    finally:
        await page.close()
    return problems


async def end_problems(task: Task, name: str, state: FinalState) -> list[str]:
    """Return where the end of a run gets another score than its name says: 1, and 0 or less than 1."""
    problems = []
    for dialect in DIALECTS.values():
        score = await score_task(task, state, dialect)
        # Partial credit is a property of one dialect, and is no success.
        expected = score.success is False and (score.reward == 0 or dialect.name is not DialectName.WEBARENA)
        if not (score.success if name == "right" else expected):
            problems.append(f"the {name} end gets {score.reward} in {dialect.name}: {score.checks}")
    return problems
