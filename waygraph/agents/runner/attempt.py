"""One attempt at a task: a browser context of its own, the agent, and what remains at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from playwright.async_api import Error as PlaywrightError
from pydantic import JsonValue

from waygraph.agents.actions.boundary import AgentBoundary, agent_boundary
from waygraph.agents.actions.session import AgentSession, SessionOptions
from waygraph.agents.actions.sites import AgentSite, describe_sites, mapped_sites
from waygraph.agents.create import AgentName, AgentParts
from waygraph.agents.loop.tips import SiteTips
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.models.budget import BudgetedModel, ModelBudget
from waygraph.agents.models.cassette import CassetteModel
from waygraph.agents.models.create import task_budget
from waygraph.agents.run_record import AgentRun, AgentStep, AttemptEnd, StepListener
from waygraph.agents.runner.network_recording import NetworkRecording
from waygraph.agents.runner.retries import AttemptFailure
from waygraph.agents.runner.screenshots import TraceScreenshots
from waygraph.agents.runner.sign_in import SignInCheck
from waygraph.agents.runner.trace import TREE_FILE, TraceWriter
from waygraph.agents.scoring.page_recorder import record_findings
from waygraph.agents.scoring.run_folder import RunFolder, TaskAnswer
from waygraph.agents.scoring.shop_access import shop_access
from waygraph.core.errors import BrowserFailure, InvalidInput, WaygraphError
from waygraph.core.urls import site_key
from waygraph.pipeline.browser.page.failures import PageFailure
from waygraph.pipeline.browser.page.script import add_page_script
from waygraph.pipeline.browser.storage.contexts import open_context, session_values
from waygraph.pipeline.browser.storage.first_documents import start_tab
from waygraph.pipeline.browser.storage.session_file import SessionState, read_session_file

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

    from waygraph.agents.models.chat import ChatModel
    from waygraph.agents.observation.page_observation import PageObservation
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
    step_seconds
        Limit of an attempt's time for each of its `max_steps` actions, the model's included, in seconds.
    allows_changes
        Whether agents may do what changes data at the sites; otherwise such actions are refused.
    cassettes
        Folder with a recording of model calls for each task, which are replayed, and added to if there is a model;
        None: calls are not recorded.
    tips
        What prompts say about the sites of a task.
    """

    output: Path
    agent: AgentName
    settings: Settings
    maps: str
    api_key: str | None
    mapped: frozenset[str]
    sessions: Path
    max_steps: int
    step_seconds: float
    allows_changes: bool = False
    cassettes: Path | None = None
    tips: SiteTips = field(default_factory=lambda: SiteTips({}))

    @property
    def task_seconds(self) -> float:
        """Limit of an attempt's time, in seconds: steps end an attempt, and time only one that hangs."""
        return self.step_seconds * self.max_steps


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
    usage
        What model calls took, those of a failed attempt included; None without any.
    """

    answer: TaskAnswer | None
    failure: AttemptFailure | None = None
    problem: str = ""
    usage: UsageModel | None = None


@dataclass(frozen=True, slots=True)
class _Left:
    """What an attempt leaves: the answer, what page targets show, and the name of the last screenshot."""

    answer: TaskAnswer
    findings: Mapping[TargetKey, PageFinding]
    screenshot: str


@dataclass(frozen=True, slots=True)
class _Watch:
    """The trace of an attempt, and the check of its session."""

    trace: TraceWriter
    sign_in: SignInCheck

    def before(self, listener: StepListener) -> StepListener:
        """Return a listener that writes a line about a session that has ended before the step that notices it."""

        async def on_step(step: AgentStep, observation: PageObservation) -> None:
            if problem := self.sign_in.check(observation):
                self.trace.write("warning", problem=problem)
            await listener(step, observation)

        return on_step


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
    model
        The chat model; None: the agent has none, or its calls are replayed.
    selector
        The chat model that chooses pages; None: `model`, or its calls are replayed.
    """

    def __init__(
        self,
        options: AttemptOptions,
        encoder: Encoder,
        maps: AsyncWaygraph | None,
        model: ChatModel | None = None,
        selector: ChatModel | None = None,
    ) -> None:
        self._selector = selector
        self._options = options
        self._encoder = encoder
        self._maps = maps
        self._model = model

    async def attempt(self, task: Task, browser: Browser, budget: ModelBudget) -> AttemptResult:
        """Do a task and store the result.

        Parameters
        ----------
        task
            The task, without open placeholders.
        browser
            The browser. It may be gone afterwards, if the failure is `BROWSER_LOST`.
        budget
            What is left of the budget of the run.

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
        own_budget = task_budget(self._options.settings.agents, task.task_id, budget)
        left: _Left | AttemptResult
        with NetworkRecording() as network:
            try:
                sites = await self._sites(task)
                known: list[JsonValue] = [asdict(site) for site in sites]
                trace.write("start", task=task.task_id, intent=task.intent, agent=self._options.agent, sites=known)
                async with agent_boundary(_urls(task, sites), self._options.settings) as boundary:
                    session = self._session(task)
                    context = await self._open_context(session, browser, network, boundary)
                    try:
                        timeout_ms = self._options.settings.browser.navigation_timeout_ms
                        pages = await _open_start_pages(task, context, session, timeout_ms)
                        watch = _Watch(trace, SignInCheck(session, sites))
                        left = await self._attempt(
                            task, sites, pages=pages, boundary=boundary, watch=watch, budget=own_budget
                        )
                    finally:
                        await _close(context)
            except (StartFailed, InvalidInput) as error:
                left = AttemptResult(None, AttemptFailure.START_FAILED, error.message)
            except (BrowserFailure, PlaywrightError) as error:
                problem = error.message if isinstance(error, BrowserFailure) else str(error)
                left = AttemptResult(None, AttemptFailure.BROWSER_LOST, problem)
            stored = network.store(task_folder)
        if isinstance(left, AttemptResult):
            trace.write("end", failure=left.failure, problem=left.problem, network=stored)
            return replace(left, usage=_calls(own_budget))
        answer = left.answer
        trace.write(
            "end",
            ended=answer.ended,
            answer=answer.answer,
            url=answer.url,
            problem=answer.problem,
            refused=answer.refused,
            screenshot=left.screenshot,
            network=stored,
        )
        folder.write_attempt(task, answer, left.findings)
        return AttemptResult(answer, usage=answer.usage)

    async def _attempt(
        self,
        task: Task,
        sites: Sequence[AgentSite],
        *,
        pages: Sequence[Page],
        boundary: AgentBoundary,
        watch: _Watch,
        budget: ModelBudget,
    ) -> _Left | AttemptResult:
        """Let the agent work; return what it leaves, or why there is no result."""
        began = time.monotonic()
        options = SessionOptions(
            browser=self._options.settings.browser,
            explore=self._options.settings.explore,
            observation=self._options.settings.agents.observation,
            destructive="allow" if self._options.allows_changes else "refuse",
            scope=await boundary.confine(pages[0].context, _urls(task, sites), has_home_page=len(sites) > 1),
            boundary=boundary,
            home=task.home if len(sites) > 1 else "",
            sites=sites,
        )
        parts = self._agent_parts(task, budget)
        maps = self._maps if mapped_sites(sites) else None
        async with AgentSession(pages[0], options, maps=maps, selector=parts.page_selector(task.intent)) as session:
            for other in pages[1:]:
                session.tabs.adopt(other)
            session.tabs.focus(0)
            agent = parts.agent(
                session,
                maps=maps,
                max_steps=self._options.max_steps,
                tree_file=RunFolder(self._options.output).task_folder(task.task_id) / TREE_FILE,
                tips=self._options.tips.text([*task.sites, *map(site_key, _urls(task, sites))]),
            )
            screenshots = TraceScreenshots(session, watch.trace)
            try:
                async with asyncio.timeout(self._options.task_seconds):
                    await screenshots.begin()
                    run = await agent.run(task.intent, watch.before(screenshots.write_step))
                    await screenshots.capture()  # a search ends on the page of its answer, which is not its last step's
            except TimeoutError:
                problem = f"The time of {self._options.task_seconds:g} s is used up."
                run = AgentRun(task.intent, AttemptEnd.BUDGET, "", session.tabs.current.page.url, "", (), problem)
                await screenshots.capture()
            if run.end is AttemptEnd.UNAVAILABLE:
                return AttemptResult(None, AttemptFailure.MODEL_UNAVAILABLE, run.problem)
            if run.end is AttemptEnd.BUDGET and budget.parent_is_spent:
                return AttemptResult(None, AttemptFailure.RUN_BUDGET_SPENT, run.problem)
            await session.end()  # a page with an open dialog shows the scorer nothing
            last = session.tabs.current.page
            await boundary.release()  # the scorer may look elsewhere
            shop = shop_access(self._options.settings.agents.shop, task.start_urls[0])
            findings = await record_findings(task, last, shop)
        answer = TaskAnswer(
            answer=run.answer,
            url=run.url,
            ended=run.end,
            steps=watch.trace.steps,
            seconds=round(time.monotonic() - began, 3),
            usage=_calls(budget),
            problem=run.problem,
            refused=boundary.count,
        )
        return _Left(answer, findings, screenshots.latest)

    async def _sites(self, task: Task) -> tuple[AgentSite, ...]:
        """Return the task's sites, that of the first start URL first."""
        if not task.start_urls:
            raise StartFailed("The task has no start URL.")
        named = {site_key(url) for url in task.site_urls.values()}
        unnamed = {site_key(url): url for url in reversed(task.start_urls) if site_key(url) not in named}
        urls = [*task.site_urls.items(), *(("", url) for url in unnamed.values())]
        first = site_key(task.start_urls[0])
        urls.sort(key=lambda site: site_key(site[1]) != first)
        return await describe_sites(urls, self._options.mapped, self._maps)

    def _agent_parts(self, task: Task, budget: ModelBudget) -> AgentParts:
        """Return what the agent of a task is made of; its calls are charged to the budget, and recorded if wanted."""
        settings, model, selector = self._options.settings.agents, self._model, self._selector
        if settings.images == "auto":
            settings = settings.model_copy(update={"images": "all" if needs_images(task) else "off"})
        if self._options.cassettes is not None:
            path = self._options.cassettes / f"{quote(task.task_id, safe='')}.jsonl"
            secrets = [each.api_key.get_secret_value() for each in (settings.model, settings.selector)]
            model = CassetteModel(path, model, secrets=secrets)
            of_selector = path.with_suffix(".selector.jsonl")
            if selector is not None or of_selector.exists():
                selector = CassetteModel(of_selector, selector, secrets=secrets)
        meter = UsageMeter(BudgetedModel(model, budget)) if model is not None else None
        chooses = meter.beside(BudgetedModel(selector, budget)) if meter is not None and selector is not None else None
        return AgentParts(self._options.agent, settings, self._encoder, meter, chooses)

    async def _open_context(
        self, session: SessionState | None, browser: Browser, network: NetworkRecording, boundary: AgentBoundary
    ) -> BrowserContext:
        profile = self._options.settings.capture
        context = await open_context(
            browser,
            session,
            viewport={"width": profile.viewport_width, "height": profile.viewport_height},
            locale=profile.locale,
            timezone_id=profile.timezone,
            reduced_motion="reduce",
            **boundary.context_options,
            **network.context_options,
        )
        await add_page_script(context)  # so that observations have elements that only listen
        return context

    def _session(self, task: Task) -> SessionState | None:
        """Return the session that a task starts with; None: none."""
        if not task.storage_state:
            return None
        path = self._options.sessions / task.storage_state
        if not path.is_file():
            raise StartFailed(f"The task's session file does not exist: {path}")
        return read_session_file(path)


def needs_images(task: Task) -> bool:
    """Return whether the task's file says that the task cannot be done from texts (WebChoreArena's `required_obs`)."""
    return task.labels.get("required_obs") == "image"


def _urls(task: Task, sites: Sequence[AgentSite]) -> tuple[str, ...]:
    """Return the URLs whose hosts the agent may visit: those of the task's tabs first."""
    home = [task.home] if task.home and len(sites) > 1 else []
    return (*task.start_urls, *(site.url for site in sites), *task.site_urls.values(), *home)


async def _open_start_pages(
    task: Task, context: BrowserContext, session: SessionState | None, timeout_ms: int
) -> Sequence[Page]:
    """Open the start URLs in tabs."""
    for url in task.start_urls:
        page = await context.new_page()
        await start_tab(page, session_values(session))
        try:
            await page.goto(url, wait_until="commit", timeout=timeout_ms)
        except PlaywrightError as error:
            raise StartFailed(PageFailure.of(error, url).message) from error
    return context.pages


async def _close(context: BrowserContext) -> None:
    try:
        await context.close()
    except PlaywrightError:  # the browser is gone, and the context with it
        return


def _calls(budget: ModelBudget) -> UsageModel | None:
    """Return what the calls of an attempt took, answers that came too late included; None without any."""
    return budget.spent if budget.spent.calls else None
