"""The replay that shows that a task of this benchmark can be done and can be failed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from bench.tasks.site_tasks import PageText, ReplayedEnd, ReplayedStep, TaskReplay
from waygraph.agents.scoring.dialects import DIALECTS, DialectName
from waygraph.agents.scoring.final_state import FinalState
from waygraph.agents.scoring.page_recorder import QUIET_CAP_MS, record_findings
from waygraph.agents.scoring.score import score_task
from waygraph.agents.tasks.task import EvaluatorKind, Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Locator, Page

#: The end of a run that does nothing.
IDLE = ReplayedEnd()
EndName = Literal["right", "wrong", "idle"]
#: Longest wait for a text or an element of a page, in milliseconds.
SHOWN_CAP_MS = 20_000
#: Most times that a field is filled, and how long it must keep its value, in milliseconds.
_FILLS, _KEPT_MS = 3, 500
#: All text of a page, of hidden parts too, with single spaces.
_TEXT = "() => document.documentElement.textContent.replace(/\\s+/g, ' ')"


class TaskCheck:
    """The replay of one task in a browser.

    Each end is reached in a tab of its own, since applications keep what was begun in a tab.

    Parameters
    ----------
    context
        The browser context, with the session of the account if the site has one.
    urls
        URLs of the task's sites, by name.
    task
        The task.
    replay
        Its replay.
    forget
        Called before each end, see `bench.real_sites.Served`.
    """

    def __init__(
        self,
        context: BrowserContext,
        urls: Mapping[str, str],
        task: Task,
        replay: TaskReplay,
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = context
        self._urls = urls
        self._task = task
        self._replay = replay
        self._forget = forget

    async def problems(self) -> list[str]:
        """Replay the task and return what is wrong with it; an empty list: nothing.

        The right end is the last one, since data that cannot be changed back stays as it is after it. Other changes
        are undone before and after each end.
        """
        try:
            problems = await self._text_problems()
            await self._undo()
            ends: dict[EndName, ReplayedEnd] = {"idle": IDLE, "wrong": self._replay.wrong, "right": self._replay.right}
            for name, end in ends.items():
                problems += await end_problems(self._task, name, await self._reach(end))
                if name != "idle":
                    await self._undo()
        except PlaywrightError as error:
            return [f"the replay fails: {error}"]
        return problems

    async def _text_problems(self) -> list[str]:
        problems = []
        page = await self._context.new_page()
        for each in self._replay.shown:
            await page.goto(self._url(each))
            try:
                await page.wait_for_function(f"text => ({_TEXT})().includes(text)", arg=each.text, timeout=SHOWN_CAP_MS)
            except PlaywrightTimeout:
                problems.append(f"{each.site}/{each.path} lacks '{each.text}'")
        for each in self._replay.absent:
            await page.goto(self._url(each))
            with suppress(PlaywrightTimeout):  # a page that is never quiet is looked at after the cap
                await page.wait_for_load_state("networkidle", timeout=QUIET_CAP_MS)
            if each.text in await page.evaluate(_TEXT):
                problems.append(f"{each.site}/{each.path} shows '{each.text}'")
        await page.close()
        return problems

    def _url(self, place: ReplayedEnd | PageText) -> str:
        return f"{self._urls[place.site or self._task.sites[0]].rstrip('/')}/{place.path}"

    async def _undo(self) -> None:
        for end in self._replay.undo:
            async with self._page_after(self._url(end), end.steps):
                pass

    async def _reach(self, end: ReplayedEnd) -> FinalState:
        """Return the state in which a run with this end leaves the task."""
        if not self._looks_at_pages:
            return FinalState(end.answer, "")
        url = self._url(end) if end != IDLE else self._task.start_urls[0]
        async with self._page_after(url, end.steps) as page:
            return FinalState(end.answer, page.url, await record_findings(self._task, page))

    @asynccontextmanager
    async def _page_after(self, url: str, steps: Sequence[ReplayedStep]) -> AsyncIterator[Page]:
        """Load a URL in a tab, and do steps there; the tab is closed at the end of the block."""
        self._forget()
        page = await self._context.new_page()
        try:
            await page.goto(url)
            for step in steps:
                await do_step(page, step)
            yield page
        finally:
            await page.close()

    @property
    def _looks_at_pages(self) -> bool:
        evaluation = self._task.evaluation
        return evaluation is not None and set(evaluation.eval_types) != {EvaluatorKind.STRING_MATCH}


async def do_step(page: Page, step: ReplayedStep) -> None:
    """Do one step, which waits until its element is ready."""
    target = page.locator(step.on).first
    match step.do:
        case "click":
            await target.click(timeout=SHOWN_CAP_MS)
        case "double-click":
            await target.dblclick(timeout=SHOWN_CAP_MS)
        case "send":
            async with page.expect_response(lambda answer: answer.request.method != "GET", timeout=SHOWN_CAP_MS):
                await target.click(timeout=SHOWN_CAP_MS)
        case "fill":
            await _fill(page, target, step.value)
        case "press":
            await target.press(step.value, timeout=SHOWN_CAP_MS)
        case "select":
            await target.select_option(step.value, timeout=SHOWN_CAP_MS)
        case "see":
            await target.wait_for(timeout=SHOWN_CAP_MS)


async def _fill(page: Page, field: Locator, value: str) -> None:
    """Fill a field, again if its editor sets the value that it had: some show their fields before they do."""
    for _ in range(_FILLS):
        await field.fill(value, timeout=SHOWN_CAP_MS)
        await page.wait_for_timeout(_KEPT_MS)
        if await field.evaluate("field => field.value ?? field.textContent") == value:
            return


async def end_problems(task: Task, name: EndName, state: FinalState) -> list[str]:
    """Return where the end of a run gets another score than its name says: 1 if it is right, else 0 or less than 1."""
    problems = []
    for dialect in DIALECTS.values():
        score = await score_task(task, state, dialect)
        # Partial credit is a property of one dialect, and is no success.
        expected = score.success is False and (score.reward == 0 or dialect.name is not DialectName.WEBARENA)
        if not (score.success if name == "right" else expected):
            problems.append(f"the {name} end gets {score.reward} in {dialect.name}: {score.checks}")
    return problems
