"""`waygraph do`: let an agent do one task, and watch it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.agent_options import agent_name, agent_overrides, check_model
from waygraph.cli.option_values import existing_files
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
    StoreOption,
    TipsOption,
    UrlOption,
    load_settings,
)
from waygraph.cli.output import clean, print_json, say, warn
from waygraph.cli.selection import open_source
from waygraph.core.errors import ModelFailure, TaskFailed
from waygraph.core.urls import parse_start_url, site_key

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from waygraph.agents.actions.sites import AgentSite
    from waygraph.agents.actions.types import AgentAction
    from waygraph.agents.create import AgentName
    from waygraph.agents.observation.elements import ObservedElement
    from waygraph.agents.observation.page_observation import PageObservation
    from waygraph.agents.run_record import AgentRun, AgentStep
    from waygraph.agents.runner.sign_in import SignInCheck
    from waygraph.core.settings import Settings
    from waygraph.pipeline.browser.storage.session_file import SessionState
    from waygraph.pipeline.explore.policies.policy import Refusal

_HINT = "Allow more actions (--max-steps), say in the task what the page shows, or use another agent (--agent)."
#: Most sites that a warning names.
_MOST_NAMED = 10

SiteOption = Annotated[
    list[str] | None,
    typer.Option("--site", metavar="SITE", help="Further site of the task: a URL, or a mapped host; repeatable."),
]
StorageStatesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--storage-state",
        metavar="FILE",
        callback=existing_files,
        help="Session to start with, saved by `waygraph login`; repeatable, for several sites.",
    ),
]


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
    site: SiteOption = None,
    storage_state: StorageStatesOption = None,
    scope: ScopeOption = None,
    scope_hosts: ScopeHostOption = None,
    max_steps: MaxStepsOption = 20,
    headed: Annotated[bool, typer.Option("--headed", help="Show the window of the browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let an agent do one task, and print every step as it is done.

    Before an action that would change data at the site you are asked on a terminal; elsewhere it is refused. The map
    of each site is used if there is one. The agent stays on the hosts of the URL and of --site, and on those of
    --scope-host and --scope domain; private addresses are reached only if you name them so.

    \b
    Exit codes: 0 the agent says that it is done, 13 it ended without, 12 the chat model failed

    \b
    Examples:
      waygraph do http://127.0.0.1:8000 "a warm wool throw"
      waygraph do https://shop.example "What does shipping to Norway cost?" --agent webnavigator --model qwen
      waygraph do https://shop.example "What does the forum say about this lamp?" --site https://forum.example
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.loop.tips import read_tips
    from waygraph.agents.run_record import AttemptEnd
    from waygraph.pipeline.browser.storage.session_file import read_session_files

    name = agent_name(agent)
    overrides = agent_overrides(
        store=store, model=model, base_url=base_url, images=images, select=select,
        selector_model=selector_model, candidates=candidates, judge=judge,
    )  # fmt: skip
    settings = load_settings(overrides | {"explore": {"scope": scope, "scope_hosts": scope_hosts}})
    check_model(name, settings)
    mapped: dict[str, str] | None = None
    if not no_map:
        with open_source(store, url, api_key) as source:
            mapped = {summary.site: summary.start_url for summary in source.sites()}
    urls = [parse_start_url(start), *((mapped or {}).get(text) or parse_start_url(text) for text in site or ())]
    session = read_session_files(storage_state or ())
    told = read_tips(tips).text(map(site_key, urls))
    attempt = _SingleTask(name, urls, settings, session, max_steps, tips=told, headed=headed)
    done = asyncio.run(attempt.run(task, mapped, url or settings.store, api_key))
    if as_json:
        sites = [asdict(each) for each in attempt.sites]
        print_json(_document(done) | {"sites": sites, "refused": attempt.refused, "warnings": attempt.warnings})
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
        urls: Sequence[str],
        settings: Settings,
        session: SessionState | None,
        max_steps: int,
        *,
        tips: str,
        headed: bool,
    ) -> None:
        self._name = name
        self._urls = urls
        self._settings = settings
        self._session = session
        self._sign_in: SignInCheck | None = None
        self._max_steps = max_steps
        self._tips = tips
        self._headed = headed
        self._steps = 0
        self.refused = 0
        """Number of documents and connections outside of the boundary that were refused."""
        self.sites: Sequence[AgentSite] = ()
        """The sites of the task, that of the start page first."""
        self.warnings: list[str] = []
        """Which sites have no map, and why sessions seem to have ended."""

    async def run(self, task: str, mapped: Collection[str] | None, maps_at: str, api_key: str | None) -> AgentRun:
        """Do the task, with the maps of its sites among these; None: without maps."""
        from waygraph.agents.actions.boundary import agent_boundary
        from waygraph.agents.actions.session import AgentSession, SessionOptions
        from waygraph.agents.actions.sites import describe_sites, mapped_sites
        from waygraph.agents.create import AgentParts
        from waygraph.agents.loop.usage_meter import UsageMeter
        from waygraph.agents.models.create import open_model
        from waygraph.agents.runner.sign_in import SignInCheck
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
            maps = await stack.enter_async_context(AsyncWaygraph(maps_at, api_key)) if mapped else None
            first_of_host: dict[str, str] = {}
            for each in self._urls:
                first_of_host.setdefault(site_key(each), each)
            self.sites = await describe_sites([("", each) for each in first_of_host.values()], mapped or (), maps)
            if mapped is not None:
                self._warn_of_unmapped(mapped)
            self._sign_in = SignInCheck(self._session, self.sites)
            urls = [*self._urls, *(site.url for site in self.sites)]
            browser = await stack.enter_async_context(launch(settings.browser, headed=self._headed))
            boundary = await stack.enter_async_context(agent_boundary(urls, settings))
            page = await new_page(browser, settings.capture, self._session, **boundary.context_options)
            await load_url(page, self._urls[0], commit_only=True)
            options = SessionOptions(
                browser=settings.browser,
                explore=settings.explore,
                observation=settings.agents.observation,
                destructive="confirm",
                confirm=_confirm,
                scope=await boundary.confine(page.context, urls, has_home_page=len(self.sites) > 1),
                boundary=boundary,
                sites=self.sites,
            )
            maps = maps if mapped_sites(self.sites) else None
            async with AgentSession(page, options, maps=maps, selector=parts.page_selector(task)) as session:
                agent = parts.agent(session, maps=maps, max_steps=self._max_steps, tips=self._tips)
                run = await agent.run(task, self._print)
                self.refused = boundary.count
                return run

    def _warn_of_unmapped(self, mapped: Collection[str]) -> None:
        """Name the further sites that have no map: their names may be misspelt."""
        known = ", ".join(sorted(mapped)[:_MOST_NAMED]) or "none"
        for site in self.sites[1:]:
            if not site.is_mapped:
                self._warn(f"No map knows {site}: it is visited by its address and links. Mapped sites: {known}.")

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        warn(text)

    async def _print(self, step: AgentStep, observation: PageObservation) -> None:
        """Print a step on stderr, so that stdout carries the result only."""
        if self._sign_in is not None and (problem := self._sign_in.check(observation)):
            self._warn(problem)
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
