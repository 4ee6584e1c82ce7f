"""`waygraph do`: let an agent do one task, and watch it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.agent_options import agent_name, agent_overrides, check_model
from waygraph.cli.options import (
    AgentOption,
    ApiKeyOption,
    BaseUrlOption,
    CandidatesOption,
    ImagesOption,
    JsonOption,
    JudgeOption,
    MaxStepsOption,
    ModelOption,
    NoMapOption,
    ScopeHostOption,
    ScopeOption,
    SelectOption,
    SelectorModelOption,
    StorageStateOption,
    StoreOption,
    TipsOption,
    UrlOption,
    load_settings,
)
from waygraph.cli.output import clean, print_json, say
from waygraph.cli.selection import open_source
from waygraph.core.errors import ModelFailure, TaskFailed
from waygraph.core.urls import site_key

if TYPE_CHECKING:
    from waygraph.agents.actions.types import AgentAction
    from waygraph.agents.create import AgentName
    from waygraph.agents.observation.elements import ObservedElement
    from waygraph.agents.observation.page_observation import PageObservation
    from waygraph.agents.run_record import AgentRun, AgentStep
    from waygraph.core.settings import Settings
    from waygraph.pipeline.explore.policies.policy import Refusal

_HINT = "Allow more actions (--max-steps), say in the task what the page shows, or use another agent (--agent)."


def do(
    start: Annotated[str, typer.Argument(metavar="URL", help="The page to begin on.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do, in plain words.")],
    *,
    agent: AgentOption = "greedy",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    images: ImagesOption = None,
    select: SelectOption = None,
    selector_model: SelectorModelOption = None,
    candidates: CandidatesOption = None,
    judge: JudgeOption = None,
    tips: TipsOption = None,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    no_map: NoMapOption = False,
    storage_state: StorageStateOption = None,
    scope: ScopeOption = None,
    scope_hosts: ScopeHostOption = None,
    max_steps: MaxStepsOption = 20,
    headed: Annotated[bool, typer.Option("--headed", help="Show the window of the browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let an agent do one task, and print every step as it is done.

    Before an action that would change data at the site you are asked on a terminal; elsewhere it is refused. The map
    of the site is used if there is one. The agent stays on the host of the URL, and on those of --scope-host and
    --scope domain; private addresses are reached only if you name them so.

    \b
    Exit codes: 0 the agent says that it is done, 13 it ended without, 12 the chat model failed

    \b
    Examples:
      waygraph do http://127.0.0.1:8000 "a warm wool throw"
      waygraph do https://shop.example "What does shipping to Norway cost?" --agent webnavigator --model qwen
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.loop.tips import read_tips
    from waygraph.agents.run_record import AttemptEnd

    name = agent_name(agent)
    overrides = agent_overrides(
        store=store, model=model, base_url=base_url, images=images, select=select,
        selector_model=selector_model, candidates=candidates, judge=judge,
    )  # fmt: skip
    settings = load_settings(overrides | {"explore": {"scope": scope, "scope_hosts": scope_hosts}})
    check_model(name, settings)
    sites: list[str] = []
    if not no_map:
        with open_source(store, url, api_key) as source:
            sites = [summary.site for summary in source.sites() if summary.site == site_key(start)]
    told = read_tips(tips).text([site_key(start)])
    attempt = _SingleTask(name, start, settings, storage_state, max_steps, tips=told, headed=headed)
    done = asyncio.run(attempt.run(task, sites, url or settings.store, api_key))
    if as_json:
        print_json(_document(done) | {"refused": attempt.refused})
    elif done.end is AttemptEnd.ANSWERED:
        say(f"Done at {done.url}")
        say(f"Answer: {done.answer or '(none)'}")
    if done.end is AttemptEnd.UNAVAILABLE:
        raise ModelFailure(done.problem, hint="Check the model: --base-url, WAYGRAPH_AGENTS__MODEL__API_KEY")
    if done.end is not AttemptEnd.ANSWERED:
        raise TaskFailed(f"The agent ended at {done.url}: {done.end}. {done.problem}".strip(), hint=_HINT)


class _SingleTask:
    """One task in a browser of its own."""

    def __init__(
        self,
        name: AgentName,
        start: str,
        settings: Settings,
        storage_state: Path | None,
        max_steps: int,
        *,
        tips: str,
        headed: bool,
    ) -> None:
        self._name = name
        self._start = start
        self._settings = settings
        self._storage_state = storage_state
        self._max_steps = max_steps
        self._tips = tips
        self._headed = headed
        self._steps = 0
        self.refused = 0
        """Number of documents and connections outside of the boundary that were refused."""

    async def run(self, task: str, sites: list[str], maps_at: str, api_key: str | None) -> AgentRun:
        from waygraph.agents.actions.boundary import agent_boundary
        from waygraph.agents.actions.session import AgentSession, SessionOptions
        from waygraph.agents.create import AgentParts
        from waygraph.agents.loop.usage_meter import UsageMeter
        from waygraph.agents.models.create import open_model
        from waygraph.cli.browser_page import load_url, new_page
        from waygraph.pipeline.browser.process.launch import launch
        from waygraph.pipeline.encode.registry import create_encoder
        from waygraph.sdk.facade import AsyncWaygraph

        settings = self._settings
        async with AsyncExitStack() as stack:
            meter = None
            if self._name.takes_model and settings.agents.model.model:
                meter = UsageMeter(await stack.enter_async_context(open_model(settings.agents.model)))
            selector = None
            if meter is not None and settings.agents.selector.model:
                selector = meter.beside(await stack.enter_async_context(open_model(settings.agents.page_model)))
            encoder = await asyncio.to_thread(create_encoder, settings.encode)
            parts = AgentParts(self._name, settings.agents, encoder, meter, selector)
            maps = await stack.enter_async_context(AsyncWaygraph(maps_at, api_key)) if sites else None
            browser = await stack.enter_async_context(launch(settings.browser, headed=self._headed))
            boundary = await stack.enter_async_context(agent_boundary([self._start], settings))
            page = await new_page(browser, settings.capture, self._storage_state, **boundary.context_options)
            await load_url(page, self._start, commit_only=True)
            options = SessionOptions(
                browser=settings.browser,
                explore=settings.explore,
                destructive="confirm",
                confirm=_confirm,
                scope=await boundary.confine(page.context, [self._start]),
                boundary=boundary,
            )
            async with AgentSession(page, options, maps=maps, selector=parts.page_selector(task)) as session:
                agent = parts.agent(session, sites=sites, maps=maps, max_steps=self._max_steps, tips=self._tips)
                run = await agent.run(task, self._print)
                self.refused = boundary.count
                return run

    async def _print(self, step: AgentStep, _: PageObservation) -> None:
        """Print a step on stderr, so that stdout carries the result only."""
        self._steps += 1
        thinking = f"   {step.thinking}\n" if step.thinking else ""
        text = f"{self._steps}. {step.action or '(no action)'}\n{thinking}   {step.status}: {step.message}"
        sys.stderr.write(clean(text) + "\n")


async def _confirm(action: AgentAction, element: ObservedElement | None, refusal: Refusal) -> bool:
    """Ask the person at the terminal whether an action may be done; without a terminal it may not."""
    if not sys.stdin.isatty():
        return False
    what = clean(f"{action.action} {element or refusal.detail}", one_line=True)
    question = f"This would change data at the site ({refusal.reason}): {what}. Do it?"
    return await asyncio.to_thread(typer.confirm, question, err=True)


def _document(done: AgentRun) -> dict[str, Any]:
    steps = [
        {"action": step.action, "status": step.status, "message": step.message, "url": step.url} for step in done.steps
    ]
    return {"end": done.end, "answer": done.answer, "url": done.url, "problem": done.problem, "steps": steps}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("do", short_help="Let an agent do one task, and watch it.")(do)
