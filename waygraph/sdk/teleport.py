"""Teleport: walk an agent's page to a state. Locate, plan, walk with a check after every step, verify, replan."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from waygraph.client.map_source import AsyncMapApi, ThreadedMapSource
from waygraph.core.errors import BrowserFailure, NoPath, WaygraphError
from waygraph.core.schemas import ActionModel, SiteDetail, WalkedStep
from waygraph.core.settings import BrowserSettings, ExploreSettings
from waygraph.index.graph import Action, PathStep
from waygraph.index.graph.url_tokens import mask_random_tokens
from waygraph.pipeline.browser.page.frame_scope import FrameScope
from waygraph.pipeline.browser.page.replay import ReplayedStep, ReplayResult, replay
from waygraph.pipeline.browser.page.snapshot import Snapshot, SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.sdk.path_planning import PathPlanner
from waygraph.sdk.state_recognition import Position, StateRecognizer
from waygraph.sdk.teleport_result import Outcome, TeleportResult, TeleportStep

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.sync_api import Page as SyncPage

    from waygraph.client.map_source import AsyncMapSource, MapSource

log = logging.getLogger(__name__)

#: Called after every step that was tried, with the page that followed.
StepListener = Callable[[TeleportStep, "Page"], Awaitable[None]]


async def ignore_step(step: TeleportStep, page: Page) -> None:
    """Do nothing with a step."""


async def teleport(
    page: Page,
    source: MapSource | AsyncMapSource,
    site: str,
    target: str,
    *,
    allow_goto: bool = True,
    max_replans: int = 3,
    settings: BrowserSettings | None = None,
    report: bool = True,
    on_step: StepListener = ignore_step,
) -> TeleportResult:
    """Walk `page` to the state or lead `target` and verify the arrival.

    The page may show anything at the start. Only recorded elements are activated. After each step the page must show
    the state that the map expects: by id or, if it differs in noise, by the evidence that `is_equivalent` compares. A
    page that was not visited is checked by its URL, its status, and its title or headings (`arrival_problem`).

    Parameters
    ----------
    page
        The caller's Playwright page. Its viewport should be that of the map's capture profile.
    source
        The maps. A blocking source is called in threads.
    site
        Key of the site.
    target
        Node id of the target.
    allow_goto
        Whether URLs may be loaded; otherwise only actions on the page are used.
    max_replans
        Number of further paths to try if the site does not behave as mapped.
    settings
        Timing of snapshots; None uses the defaults.
    report
        Whether to report to `source` how each step worked, so that later paths avoid broken steps. A page with another
        size than the map's capture profile shows another layout of the site, and is not reported.
    on_step
        Called after every step that was tried, for example `TeleportRecorder.on_step`.

    Returns
    -------
    TeleportResult
        How the walk ended, and the trace of its steps.

    Raises
    ------
    NotFound
        If the site or the target is not in the map.
    """
    settings = settings or BrowserSettings()
    maps = source if isinstance(source, AsyncMapApi) else ThreadedMapSource(source)
    detail = await maps.site(site)
    walk = _Teleport(
        maps,
        detail.site,
        target,
        allow_goto=allow_goto,
        report=report and _has_mapped_size(page, detail),
        on_step=on_step,
    )
    view = PageView(page, snapshot_options_of_map(detail, settings), settings, owned=False)
    walk.views.append(view)
    try:
        return await walk.run(view, max_replans)
    finally:
        for used in walk.views:
            used.detach()


def teleport_sync(
    page: SyncPage,
    source: MapSource,
    site: str,
    target: str,
    **options: Any,  # noqa: ANN401 - typed in `teleport`
) -> TeleportResult[SyncPage]:
    """Walk a page of Playwright's sync API to the state `target`, in the thread that the page belongs to.

    While calls of the page and of the maps wait, the caller's event handlers run, as in any call of that API.

    Parameters
    ----------
    page
        The caller's Playwright page.
    source
        The maps.
    site
        Key of the site.
    target
        Node id of the target.
    **options
        Further parameters of `teleport`.

    Returns
    -------
    TeleportResult[SyncPage]
        How the walk ended, and the trace of its steps.

    Raises
    ------
    NotFound
        If the site or the target is not in the map.
    EnvironmentMissing
        If this version of Playwright is not supported, see `waygraph.sdk.sync_page.run`.
    """
    # The async API needs neither greenlets nor Playwright's sync API.
    from waygraph.sdk.sync_page import run, unwrap  # noqa: PLC0415

    result: TeleportResult[Any] = run(page, lambda awaitable: teleport(awaitable, source, site, target, **options))
    return replace(result, page=unwrap(result.page))


class _Teleport:
    """One teleport in progress.

    Parameters
    ----------
    source
        The maps.
    site
        Key of the site.
    target
        Node id of the target.
    allow_goto
        Whether URLs may be loaded.
    report
        Whether to report how each step worked.
    on_step
        Called after every step that was tried.

    Attributes
    ----------
    views
        Views that listen to pages of the caller; the caller of `run` detaches them.
    """

    def __init__(
        self,
        source: AsyncMapApi,
        site: str,
        target: str,
        *,
        allow_goto: bool,
        report: bool,
        on_step: StepListener,
    ) -> None:
        self._source = source
        self._site = site
        self._allow_goto = allow_goto
        self._report_steps = report
        self._on_step = on_step
        self._recognizer = StateRecognizer(source, site)
        self._planner = PathPlanner(source, site, target, allow_goto=allow_goto)
        self._steps: list[TeleportStep] = []
        self.views: list[PageView] = []

    async def run(self, view: PageView, max_replans: int) -> TeleportResult:
        problem = ""
        replans = max_replans
        for replans in range(max_replans + 1):
            try:
                # Without `goto` the path must start on this page, so the features of the page are worth sending.
                position = await self._locate(view, with_features=not self._allow_goto)
            except BrowserFailure as error:
                return self._result(view, "failed", None, replans, error.message)
            if position.state is not None and position.state.node_id == self._planner.target:
                return self._result(view, position.state.outcome, position.state.node_id, replans, "")
            start = self._start(position)
            try:
                steps = await self._planner.plan(start, partial(_is_missing, position.snapshot))
            except NoPath as error:
                problem = problem or error.message
                break
            if not steps:
                problem = problem or "The page resembles the target, but is not the recorded state."
                break
            replayed = await self._walk(view, position, start, steps)
            view, problem = replayed.view, replayed.problem or problem
            # A start that is only likely may itself be the reason why a step failed.
            if position.state is not None and position.state.outcome == "arrived":
                await self._report(start, replayed.steps)
        return await self._verify(view, replans, problem)

    async def _locate(self, view: PageView, *, with_features: bool) -> Position:
        snapshot = await view.observe()
        return await self._recognizer.locate(snapshot, self._planner.target, with_features=with_features)

    def _start(self, position: Position) -> str | None:
        """Return the state where the path starts; None starts with loading a URL."""
        if position.state is not None:
            return position.state.node_id
        # Without `goto` the likeliest state is worth a try: only recorded elements are activated.
        return None if self._allow_goto else position.likely_node_id

    async def _walk(
        self, view: PageView, position: Position, start: str | None, steps: Sequence[PathStep]
    ) -> ReplayResult:
        """Replay a path, and avoid the step that failed in later plans."""
        self._recognizer.begin_walk(position, steps)
        replayed = await replay(view, steps, agrees=self._recognizer.agrees, on_step=self._note_step)
        if replayed.view not in self.views:
            self.views.append(replayed.view)
        if not replayed.complete:
            self._planner.note_failure(start, steps, replayed)
        return replayed

    async def _note_step(self, walked: ReplayedStep, view: PageView) -> None:
        step = TeleportStep.of(walked)
        self._steps.append(step)
        await self._on_step(step, view.page)

    async def _verify(self, view: PageView, replans: int, problem: str) -> TeleportResult:
        """Return the result for the page on which the last walk ended."""
        try:
            position = await self._locate(view, with_features=False)
        except BrowserFailure as error:
            return self._result(view, "failed", None, replans, problem or error.message)
        state = position.state
        if state is not None and state.node_id == self._planner.target:
            return self._result(view, state.outcome, state.node_id, replans, "")
        if self._steps:
            problem = await self._recognizer.lead_problem(position.snapshot, self._planner.target) or problem
        # Each step may have led to the recorded state, and the page has changed since by itself.
        problem = problem or f"After the last step the page changed, and {view.page.url} does not show the target."
        # A page that only resembles another state is no certain answer to where the walk ended.
        if state is None or state.outcome != "arrived":
            return self._result(view, "failed", None, replans, problem)
        return self._result(view, "arrived_elsewhere", state.node_id, replans, problem)

    async def _report(self, start: str | None, walked: Sequence[ReplayedStep]) -> None:
        """Report how steps worked. A report that fails does not affect the teleport."""
        sources = [start, *(each.step.expected_node_id for each in walked)]
        report = [
            # Validated when it is sent: a step that is too large for a report must not end the walk.
            WalkedStep.model_construct(
                source=source,
                action=ActionModel.model_validate(each.step.action.to_json()),
                target=each.step.expected_node_id,
                outcome="ok" if each.agrees else "gone" if each.gone else "drifted",
                ms=round(each.ms, 1),
            )
            for source, each in zip(sources, walked, strict=False)
            if each.agrees or each.gone or each.seen_node_id
        ]
        if not (report and self._report_steps):
            return
        try:
            await self._source.feedback(self._site, report)
        except WaygraphError as error:
            log.info("the report on %d steps was rejected: %s", len(report), error)

    def _result(
        self, view: PageView, outcome: Outcome, node_id: str | None, replans: int, problem: str
    ) -> TeleportResult:
        return TeleportResult(outcome, node_id, view.page.url, tuple(self._steps), replans, problem, view.page)


def _is_missing(shown: Snapshot, action: Action) -> bool:
    """Return whether no element of a page has the target of a link, random-looking parts aside.

    Links to parts of a page are not compared: their addresses differ if the site shows the page at several URLs.
    """
    if not action.target or "#" in action.target:
        return False
    target = mask_random_tokens(action.target)
    return all(mask_random_tokens(candidate.action.target) != target for candidate in shown.candidates)


def _has_mapped_size(page: Page, detail: SiteDetail) -> bool:
    """Whether a page has the size that the map was made with."""
    size = page.viewport_size
    mapped = (detail.capture.get("viewport_width"), detail.capture.get("viewport_height"))
    return size is not None and (size["width"], size["height"]) == mapped


def snapshot_options_of_map(detail: SiteDetail, settings: BrowserSettings) -> SnapshotOptions:
    """Return the snapshot options that the map was made with: roles, hovering, frames and URL policy."""
    recorded = detail.settings.get("explore", {})
    known = {name: value for name, value in recorded.items() if name in ExploreSettings.model_fields}
    explore = ExploreSettings.model_validate(known)
    frames = FrameScope(frozenset({detail.site, *explore.scope_hosts}), detail.settings.get("domain", ""))
    return SnapshotOptions.from_settings(settings, explore, frames)
