"""How does an agent's page get to a state? Locate, plan, walk with a check at every step, verify, re-plan on drift."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

from typing_extensions import TypeVar

from index.graph import Action, Evidence, PathStep
from pipeline.browser.features import features
from pipeline.browser.foreign import FrameScope
from pipeline.browser.replay import Replayed, Walked, replay, same_change, same_or_equivalent
from pipeline.browser.snapshot import Lens, Snapshot
from pipeline.browser.view import PageView
from waygraph.errors import BrowserFailure, NoPath, WaygraphError
from waygraph.schemas import (
    ActionModel,
    AvoidedStep,
    EvidenceModel,
    LocateAnswer,
    PathAnswer,
    SiteDetail,
    StepModel,
    WalkedStep,
)
from waygraph.settings import BrowserSettings, ExploreSettings
from waygraph.source import InThreads

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.sync_api import Page as SyncPage

    from waygraph.source import AsyncMapSource, MapSource

log = logging.getLogger(__name__)

#: A page of Playwright's async API, or of its sync API.
AnyPage = TypeVar("AnyPage", default="Page")

#: `arrived`: the page has the id of the state that was asked for, or of another look at it that exploring saw.
#: `arrived_equivalent`: it differs from those in noise, and shows all that distinguishes the state from others, or the
#: last step changed a page that did so exactly as the map says.
#: `arrived_elsewhere`: the walk ended on another state that the map knows. `failed`: it ended on a page that the map
#: does not know, or could not go on.
Outcome = Literal["arrived", "arrived_equivalent", "arrived_elsewhere", "failed"]


@dataclass(frozen=True, slots=True)
class TeleportStep:
    """One step of the walk: what was done, what was expected, what was seen."""

    action: str
    expected_node_id: str
    seen_node_id: str
    seen_url: str
    rung: str
    ms: float
    agrees: bool
    problem: str

    @classmethod
    def of(cls, walked: Walked) -> TeleportStep:
        """The trace entry of a step that was tried."""
        return cls(
            action=str(walked.step.action),
            expected_node_id=walked.step.expected_node_id,
            seen_node_id=walked.seen_node_id,
            seen_url=walked.seen_url,
            rung=walked.rung,
            ms=round(walked.ms, 1),
            agrees=walked.agrees,
            problem=walked.problem,
        )

    def __str__(self) -> str:
        return (
            f"{self.action} -> {self.seen_url} ({self.ms:.0f} ms)" if self.agrees else f"{self.action}: {self.problem}"
        )


@dataclass(frozen=True, slots=True)
class TeleportResult(Generic[AnyPage]):
    """How a teleport ended.

    Attributes
    ----------
    outcome : see `Outcome`.
    node_id : the state that the page shows, when the map knows it.
    url : the page's URL.
    steps : everything that was done, in order, over all plans.
    replans : how often a new path was needed because the site did not behave as mapped.
    problem : why it did not arrive; empty when it did.
    page : the page that shows the end, a new tab when a step opened one.
    """

    outcome: Outcome
    node_id: str | None
    url: str
    steps: tuple[TeleportStep, ...]
    replans: int
    problem: str
    page: AnyPage

    @property
    def arrived(self) -> bool:
        """Whether the page shows the target; what there is to see of that was checked."""
        return self.outcome in {"arrived", "arrived_equivalent"}

    def to_json(self) -> dict[str, Any]:
        """The result without the live page."""
        names = [name for name in self.__slots__ if name not in {"page", "steps"}]
        steps = [{name: getattr(step, name) for name in TeleportStep.__slots__} for step in self.steps]
        return {**{name: getattr(self, name) for name in names}, "steps": steps}


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
) -> TeleportResult:
    """Walk `page` to the state `target` and verify the arrival.

    The page may show anything at first. No element is activated unless it is the recorded one. After each step the page
    must be the state that the map expects: by id, or, when it differs in noise, by the evidence of `is_equivalent`.

    Parameters
    ----------
    page : a Playwright page, the caller's; its viewport should be that of the map's capture profile.
    allow_goto : whether URLs may be loaded; else only actions on the page are used.
    max_replans : how many further paths to try when the site does not behave as mapped.
    report : tell the maps' source how each step worked, so that others are led around what is broken. Pages of another
        size than the map's capture profile see another site, and are not reported.

    Raises
    ------
    NotFound
        When the site or the target is not in the map.
    """
    asked = _awaited(source)
    detail = await asked.site(site)
    walk = _Walk(asked, detail, target, allow_goto=allow_goto, report=report and _is_alike(page, detail))
    view = PageView(page, _lens(detail, settings or BrowserSettings()), settings or BrowserSettings(), own=False)
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
    """`teleport` for a page of Playwright's sync API, in the thread that the page belongs to.

    Calls of the page and of the maps wait as calls of that API do: handlers of the caller are called meanwhile.

    Raises
    ------
    NotFound
        When the site or the target is not in the map.
    EnvironmentMissing
        See `waygraph.sync_page.run`.
    """
    from waygraph.sync_page import plain, run  # noqa: PLC0415 - who awaits needs neither greenlets nor the sync API

    result: TeleportResult[Any] = run(page, lambda awaited: teleport(awaited, source, site, target, **options))
    return replace(result, page=plain(result.page))


@dataclass(frozen=True, slots=True)
class _Known:
    """A state that a page shows, and how a walk that wanted it has ended."""

    node_id: str
    outcome: Literal["arrived", "arrived_equivalent"]


class _Walk:
    """One teleport under way."""

    def __init__(
        self, source: AsyncMapSource, detail: SiteDetail, target: str, *, allow_goto: bool, report: bool
    ) -> None:
        self._source = source
        self._report_steps = report
        self._site = detail.site
        self._target = target
        self._allow_goto = allow_goto
        self._avoid: list[AvoidedStep] = []
        self._hidden: list[AvoidedStep] = []
        """Links that this browser did not show on one page: others have them too, when there is no other way."""
        self._instead: tuple[str, str] | None = None
        """What was seen where another state of the same URL should have been: this one, that one."""
        self._to: dict[str, PathStep] = {}
        """By state, what must be seen there."""
        self._before: Snapshot | None = None
        """The page before the next step, when it is certain which state it shows."""
        self._changed: tuple[Snapshot, str] | None = None
        """A page that was known by what the last step changed alone, and the state that it shows."""
        self._steps: list[TeleportStep] = []
        self.views: list[PageView] = []
        """Views that listen to pages of the caller, to be detached in the end."""

    async def run(self, view: PageView, max_replans: int) -> TeleportResult:
        problem = ""
        for replans in range(max_replans + 1):
            try:
                seen = await view.observe()
                here = await self._locate(seen)
            except BrowserFailure as error:
                return self._ended(view, "failed", None, replans, error.message)
            known = await self._recognised(seen, here)
            if known is not None and known.node_id == self._target:
                return self._ended(view, known.outcome, self._target, replans, "")
            if known is None and not self._allow_goto:
                # The way begins here: in this browser the page may look unlike any state, and still show what is one's.
                here = await self._locate(seen, features(seen))
                known = await self._recognised(seen, here)
            # Without `goto` the likeliest state is worth a try: only recorded elements are activated.
            start = known.node_id if known is not None else None if self._allow_goto else here.node_id
            try:
                steps = await self._plan(start)
            except NoPath as error:
                problem = problem or error.message
                break
            if not steps:
                problem = problem or "The page resembles the target, but is not the recorded state."
                break
            self._before = seen if known is not None else None
            replayed = await self._walk(view, start, steps)
            view, problem = replayed.view, replayed.problem or problem
            if known is not None and known.outcome == "arrived":  # else it may be the start that was wrong
                await self._report(start, replayed.walked)
        else:
            replans = max_replans
        return await self._fallen_short(view, replans, problem)

    async def _recognised(self, seen: Snapshot, here: LocateAnswer) -> _Known | None:
        """The state that a page shows, when that is certain: the target, or the state that it was located as."""
        if same_or_equivalent(seen, await self._step_to(self._target)):
            is_itself = here.rule == "exact" and here.node_id == self._target
            return _Known(self._target, "arrived" if is_itself else "arrived_equivalent")
        if self._changed is not None and seen.id == self._changed[0].id:
            return _Known(self._changed[1], "arrived_equivalent")
        if here.node_id is None or here.node_id == self._target:
            return None
        if same_or_equivalent(seen, await self._step_to(here.node_id)):
            return _Known(here.node_id, "arrived" if here.rule == "exact" else "arrived_equivalent")
        return None

    async def _walk(self, view: PageView, start: str | None, steps: Sequence[PathStep]) -> Replayed:
        """Walk a path; a step that does not work is avoided by the next one."""
        self._to.update((step.expected_node_id, step) for step in steps)
        replayed = await replay(view, steps, agrees=self._agrees)
        if replayed.view not in self.views:
            self.views.append(replayed.view)
        self._steps += [TeleportStep.of(walked) for walked in replayed.walked]
        if not replayed.complete:
            tried = len(replayed.walked) - 1
            before = steps[tried - 1].expected_node_id if tried else start
            failed = steps[tried].action
            self._avoid.append(AvoidedStep.model_validate({"source": before, "action": failed.to_json()}))
            last = replayed.walked[-1]
            if last.seen_node_id and last.seen_url == last.step.expected_url:
                self._instead = last.seen_node_id, last.step.expected_node_id
            if failed.target and last.gone:
                # A link that is behind a button in this browser most likely is so on other pages.
                self._hidden.append(AvoidedStep.model_validate({"source": None, "action": failed.to_json()}))
        return replayed

    def _agrees(self, seen: Snapshot, step: PathStep) -> bool:
        """Whether the page after a step is the state that the map expects."""
        before, self._before, self._changed = self._before, None, None
        agrees = same_or_equivalent(seen, step)
        if not agrees and before is not None and same_change(before, seen, step):
            agrees, self._changed = True, (seen, step.expected_node_id)
        if agrees:
            self._before = seen
        return agrees

    async def _fallen_short(self, view: PageView, replans: int, problem: str) -> TeleportResult:
        try:
            seen = await view.observe()
            here = await self._locate(seen)
        except BrowserFailure as error:
            return self._ended(view, "failed", None, replans, problem or error.message)
        known = await self._recognised(seen, here)
        if known is None:
            return self._ended(view, "failed", None, replans, problem)
        if known.node_id == self._target:
            return self._ended(view, known.outcome, self._target, replans, "")
        if known.outcome != "arrived":  # like another state, but who did not arrive there is told what is certain
            return self._ended(view, "failed", None, replans, problem)
        return self._ended(view, "arrived_elsewhere", known.node_id, replans, problem)

    async def _locate(self, seen: Snapshot, shown: Mapping[str, int] | None = None) -> LocateAnswer:
        return await self._source.locate(self._site, seen.raw_url, list(seen.structure), shown)

    async def _report(self, start: str | None, walked: Sequence[Walked]) -> None:
        """Tell how steps worked. What goes wrong with that is none of the caller's business."""
        sources = [start, *(each.step.expected_node_id for each in walked)]
        report = [
            WalkedStep(
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
            log.info("the report on %d steps was not taken: %s", len(report), error)

    async def _plan(self, start: str | None) -> tuple[PathStep, ...]:
        seen, expected = self._instead or ("", "")
        self._instead = None
        if start == seen:
            # The site remembers how the page was left, and shows it so again wherever one comes from. What changed it
            # here may change it back.
            try:
                return await self._way(start, expected, allow_goto=False) + await self._way(expected, self._target)
            except NoPath as error:
                log.debug("no way back to what '%s' was: %s", start, error.message)
        return await self._way(start, self._target)

    async def _way(self, start: str | None, target: str, *, allow_goto: bool = True) -> tuple[PathStep, ...]:
        async def way(avoid: list[AvoidedStep]) -> PathAnswer:
            allowed = allow_goto and self._allow_goto
            return await self._source.path(self._site, start, target, allow_goto=allowed, avoid=avoid)

        try:
            answer = await way(self._avoid + self._hidden)
        except NoPath:
            if not self._hidden:
                raise
            answer = await way(self._avoid)
        if target == self._target:
            self._target = answer.target
        return tuple(_step(step) for step in answer.steps)

    async def _step_to(self, node_id: str) -> PathStep:
        """What must be seen at a state, whatever leads there."""
        if node_id not in self._to:
            node = await self._source.node(self._site, node_id)
            there = StepModel(
                action=ActionModel(kind="goto", url=node.url),
                expected_url=node.url,
                expected_node_id=node.node_id,
                cost_ms=0.0,
                accepts=node.aliases,
                evidence=node.evidence,
            )
            self._to[node_id] = _step(there)
        return self._to[node_id]

    def _ended(
        self, view: PageView, outcome: Outcome, node_id: str | None, replans: int, problem: str
    ) -> TeleportResult:
        return TeleportResult(outcome, node_id, view.page.url, tuple(self._steps), replans, problem, view.page)


def _awaited(source: MapSource | AsyncMapSource) -> AsyncMapSource:
    if inspect.iscoroutinefunction(source.path):
        return cast("AsyncMapSource", source)
    return InThreads(cast("MapSource", source))


def _is_alike(page: Page, detail: SiteDetail) -> bool:
    """Whether a page has the size that the map was made with."""
    size = page.viewport_size
    mapped = (detail.capture.get("viewport_width"), detail.capture.get("viewport_height"))
    return size is not None and (size["width"], size["height"]) == mapped


def _lens(detail: SiteDetail, settings: BrowserSettings) -> Lens:
    """Look at pages as the map's makers did: roles, hovering, frames and URL policy are part of what was recorded."""
    recorded = detail.settings.get("explore", {})
    known = {name: value for name, value in recorded.items() if name in ExploreSettings.model_fields}
    explore = ExploreSettings.model_validate(known)
    frames = FrameScope(frozenset({detail.site, *explore.scope_hosts}), detail.settings.get("domain", ""))
    return Lens.of(settings, explore, frames)


def _evidence(model: EvidenceModel) -> Evidence:
    return Evidence(
        shows=model.shows,
        hides=model.hides,
        features=tuple(model.features),
        elements=tuple(model.elements),
        own=tuple(model.own),
        alone=model.alone,
        named=model.named,
    )


def _step(step: StepModel) -> PathStep:
    return PathStep(
        action=Action.from_json(step.action.model_dump()),
        expected_node_id=step.expected_node_id,
        expected_url=step.expected_url,
        cost_ms=step.cost_ms,
        inherited=step.inherited,
        opens_tab=step.opens_tab,
        accepts=tuple(step.accepts),
        evidence=_evidence(step.evidence) if step.evidence else None,
        change=step.change,
    )
