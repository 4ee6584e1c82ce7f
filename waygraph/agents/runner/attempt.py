"""One attempt at a task: a browser context of its own, the agent, and what remains at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error as PlaywrightError

from waygraph.agents.actions.session import AgentSession, SessionOptions
from waygraph.agents.create import AgentName, create_agent
from waygraph.agents.models.chat import add_usage
from waygraph.agents.run_record import AgentRun, AttemptEnd
from waygraph.agents.runner.network_recording import NetworkRecording
from waygraph.agents.runner.retries import AttemptFailure
from waygraph.agents.runner.screenshots import TraceScreenshots
from waygraph.agents.runner.trace import TraceWriter
from waygraph.agents.scoring.page_recorder import record_findings
from waygraph.agents.scoring.run_folder import RunFolder, TaskAnswer
from waygraph.core.errors import BrowserFailure, WaygraphError
from waygraph.core.urls import site_key
from waygraph.pipeline.browser.page.failures import PageFailure

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

    from waygraph.agents.scoring.final_state import PageFinding, TargetKey
    from waygraph.agents.tasks.task import Task
    from waygraph.core.schemas import UsageModel
    from waygraph.core.settings import Settings
    from waygraph.pipeline.encode.protocol import Encoder
    from waygraph.sdk.facade import AsyncWaygraph


@dataclass(frozen=True, slots=True)
class AttemptOptions:
    """What is the same for all attempts of a run.

    Attributes
    ----------
    output
        Folder of the run.
    agent
        The agent.
    settings
        Settings of browser, window and encoder.
    maps
        Store or URL of a service; empty: the agent has no maps.
    api_key
        API key of the service; None: none.
    mapped
        Keys of the sites that have maps there.
    sessions
        Folder that the names of session files (`storage_state` of tasks) are relative to.
    max_steps
        Limit of an attempt's actions.
    task_seconds
        Limit of an attempt's time, in seconds.
    """

    output: Path
    agent: AgentName
    settings: Settings
    maps: str
    api_key: str | None
    mapped: frozenset[str]
    sessions: Path
    max_steps: int
    task_seconds: float


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended.

    Attributes
    ----------
    answer
        What the agent left; it is stored already. None: there is no result.
    failure
        Why there is no result.
    problem
        The failure in words; empty without one.
    """

    answer: TaskAnswer | None
    failure: AttemptFailure | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Left:
    """What an attempt leaves: the answer, what page targets show, and the name of the last screenshot."""

    answer: TaskAnswer
    findings: Mapping[TargetKey, PageFinding]
    screenshot: str


class StartFailed(WaygraphError):
    """A page that a task starts with could not be loaded, or its session file could not be read."""


class TaskAttempts:
    """Does tasks in one browser, one after the other or at the same time.

    Parameters
    ----------
    options
        Options of the run.
    encoder
        Compares texts with tasks.
    maps
        Maps for the action `navigate`; None: there are none.
    """

    def __init__(self, options: AttemptOptions, encoder: Encoder, maps: AsyncWaygraph | None) -> None:
        self._options = options
        self._encoder = encoder
        self._maps = maps

    async def attempt(self, task: Task, browser: Browser) -> AttemptResult:
        """Do a task and store the result.

        Parameters
        ----------
        task
            The task, without open placeholders.
        browser
            The browser. It may be gone afterwards, if the failure is `BROWSER_LOST`.

        Returns
        -------
        AttemptResult
            The result. Everything that pages and agents do is a part of it, not an exception.

        Raises
        ------
        OSError
            If the result cannot be written.
        """
        folder = RunFolder(self._options.output)
        task_folder = folder.task_folder(task.task_id)
        trace = TraceWriter(task_folder)
        site = self._mapped_site(task)
        trace.write("start", task=task.task_id, intent=task.intent, agent=self._options.agent, mapped_site=site)
        left: _Left | None = None
        result = AttemptResult(None)
        with NetworkRecording() as network:
            try:
                context = await self._open_context(task, browser, network)
                try:
                    left = await self._attempt(task, context, site, trace)
                finally:
                    await _close(context)
            except StartFailed as error:
                result = AttemptResult(None, AttemptFailure.START_FAILED, error.message)
            except (BrowserFailure, PlaywrightError) as error:
                problem = error.message if isinstance(error, BrowserFailure) else str(error)
                result = AttemptResult(None, AttemptFailure.BROWSER_LOST, problem)
            stored = network.store(task_folder)
        if left is None:
            trace.write("end", failure=result.failure, problem=result.problem, network=stored)
            return result
        answer = left.answer
        trace.write(
            "end",
            ended=answer.ended,
            answer=answer.answer,
            url=answer.url,
            problem=answer.problem,
            screenshot=left.screenshot,
            network=stored,
        )
        folder.write_attempt(task, answer, left.findings)
        return AttemptResult(answer)

    async def _attempt(self, task: Task, context: BrowserContext, site: str, trace: TraceWriter) -> _Left:
        began = time.monotonic()
        page = await _open_start_pages(task, context, self._options.settings.browser.navigation_timeout_ms)
        options = SessionOptions(browser=self._options.settings.browser, explore=self._options.settings.explore)
        async with AgentSession(page, options, maps=self._maps if site else None) as session:
            for other in context.pages[1:]:
                session.tabs.adopt(other)
            session.tabs.focus(0)
            agent = create_agent(
                self._options.agent, session, encoder=self._encoder, site=site, max_steps=self._options.max_steps
            )
            screenshots = TraceScreenshots(session, trace)
            try:
                async with asyncio.timeout(self._options.task_seconds):
                    await screenshots.begin()
                    run = await agent.run(task.intent, screenshots.write_step)
            except TimeoutError:
                problem = f"The time of {self._options.task_seconds:g} s is used up."
                run = AgentRun(task.intent, AttemptEnd.BUDGET, "", session.tabs.current.page.url, "", (), problem)
                await screenshots.capture()
            last = session.tabs.current.page
            findings = await record_findings(task, last)
        answer = TaskAnswer(
            answer=run.answer,
            url=run.url,
            ended=run.end,
            steps=trace.steps,
            seconds=round(time.monotonic() - began, 3),
            usage=_usage_of(run),
            problem=run.problem,
        )
        return _Left(answer, findings, screenshots.latest)

    def _mapped_site(self, task: Task) -> str:
        """Return the key of the task's site if it has a map; empty: the agent works without one."""
        if self._maps is None or not task.start_urls:
            return ""
        site = site_key(task.start_urls[0])
        return site if site in self._options.mapped else ""

    async def _open_context(self, task: Task, browser: Browser, network: NetworkRecording) -> BrowserContext:
        profile = self._options.settings.capture
        session: dict[str, Any] = {}
        if task.storage_state:
            path = self._options.sessions / task.storage_state
            if not path.is_file():
                raise StartFailed(f"The task's session file does not exist: {path}")
            session["storage_state"] = path
        return await browser.new_context(
            viewport={"width": profile.viewport_width, "height": profile.viewport_height},
            locale=profile.locale,
            timezone_id=profile.timezone,
            reduced_motion="reduce",
            **session,
            **network.context_options,
        )


async def _open_start_pages(task: Task, context: BrowserContext, timeout_ms: int) -> Page:
    """Open the start URLs in tabs, and return the first one."""
    if not task.start_urls:
        raise StartFailed("The task has no start URL.")
    for url in task.start_urls:
        page = await context.new_page()
        try:
            await page.goto(url, wait_until="commit", timeout=timeout_ms)
        except PlaywrightError as error:
            raise StartFailed(PageFailure.of(error, url).message) from error
    return context.pages[0]


async def _close(context: BrowserContext) -> None:
    try:
        await context.close()
    except PlaywrightError:  # the browser is gone, and the context with it
        return


def _usage_of(run: AgentRun) -> UsageModel | None:
    usage: UsageModel | None = None
    for step in run.steps:
        if step.usage is not None:
            usage = step.usage if usage is None else add_usage(usage, step.usage)
    return usage
