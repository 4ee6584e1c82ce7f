"""A worker of the crawl: reaches a state, acts on it in place, follows the action, and reverts it.

A worker has two pages. The *stage* shows the state that is being explored, and actions are performed there. Documents
that an action requests are held back and loaded in the *loader's* page, so that the stage can stay at its state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal
from urllib.parse import urldefrag

from msgspec import structs
from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import BrowserFailure
from waygraph.index.graph import Action, BlockedRequest, PathStep
from waygraph.pipeline.browser.guard import StoppedRequests, suggest_rule
from waygraph.pipeline.browser.page.actor import PerformedAction
from waygraph.pipeline.browser.page.failures import (
    ClassifiedError,
    FailureCause,
    FailureKind,
    NotActionable,
    failure_cause,
)
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.gestures import keeps_pointer
from waygraph.pipeline.browser.page.observer import SettledPage
from waygraph.pipeline.browser.page.replay import Agreement, ReplayResult, replay
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.browser.session import GuardedPage
from waygraph.pipeline.browser.storage.stored_values import StoredValues
from waygraph.pipeline.explore.engine.context import CrawlContext
from waygraph.pipeline.explore.engine.loader import BlockedOrRateLimited, LiveSession, Loader, Loads, check_answer
from waygraph.pipeline.explore.engine.retries import Retries
from waygraph.pipeline.explore.engine.revert import Reverter, RevertRates, is_back
from waygraph.pipeline.explore.engine.session_page import SessionPage
from waygraph.pipeline.explore.identity import feature_change, rebase
from waygraph.pipeline.explore.identity.rebase import noise_between
from waygraph.pipeline.explore.identity.session_values import name_of
from waygraph.pipeline.explore.politeness.pace import Pace
from waygraph.pipeline.explore.records.noise import NO_NOISE, Noise
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import LeftValues

log = logging.getLogger(__name__)

#: Why a stage does not show its state any more, so that a document must be loaded (`load/<reason>`).
LeaveReason = Literal["chunk", "not_back", "silent", "pointer", "session", "another_way", "retry"]

#: Kinds of actions whose result ends when pointer and focus leave.
_POINTING = frozenset({"hover", "focus"})


class NotReached(ClassifiedError):
    """A recorded state could not be reached again; its work items fail with this reason."""


@dataclass(slots=True)
class _Stage:
    """The page that shows the state to act on.

    Attributes
    ----------
    page
        The page.
    state
        Recorded snapshot of the state.
    snapshot
        Snapshot of this document, which may differ from the recorded one in noise.
    noise
        The difference.
    stored
        Cookies and storage when the state was reached.
    digest
        Digest of the document when the state was reached.
    hovered
        Whether the pointer holds the state open. Acting on it ends it without a change of the document.
    opened_by
        Actions at the end of the route with which the pointer or the focus alone opened the state.
    used
        Whether something was done to the page that a script may remember.
    waited
        Whether the page waits since an earlier chunk.
    """

    page: GuardedPage
    state: Snapshot
    snapshot: Snapshot
    noise: Noise
    stored: StoredValues
    digest: str
    hovered: bool
    opened_by: tuple[Action, ...] = ()
    used: bool = False
    waited: bool = False


@dataclass(frozen=True, slots=True)
class _ActionResult:
    """What an action did to the stage, before anything was followed or reverted.

    Attributes
    ----------
    performed
        How the action was performed.
    settled
        The page after it.
    stopped
        Requests that the guard stopped meanwhile.
    is_pressed_behind_guard
        See `CrawlContext`.
    """

    performed: PerformedAction
    settled: SettledPage
    stopped: StoppedRequests
    is_pressed_behind_guard: bool

    @property
    def requested_document(self) -> bool:
        """Whether the action requested a document, in the page or in a new tab."""
        return bool(self.stopped.held or self.settled.tabs)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How an action is performed.

    Attributes
    ----------
    hold_navigations
        Whether documents that the action requests are loaded in another page.
    sends
        Shapes of requests that may pass although an action sends them.
    is_double
        Whether the element is clicked twice, since the first click only replaces its handler.
    """

    hold_navigations: bool = True
    sends: frozenset[str] = frozenset()
    is_double: bool = False


@dataclass(frozen=True, slots=True)
class _Followed:
    """Where an action led, and the snapshot of the stage after it."""

    outcome: ActionOutcome
    snapshot: Snapshot


class Worker:
    """Perform work items, one at a time.

    Parameters
    ----------
    context
        What all workers share.
    pace
        The slot of this worker and its turns at hosts.
    loads
        Results of loaded URLs, shared by all workers.
    agrees
        Whether a snapshot on a route shows what the map expects there.
    item_seconds
        Time limit of a work item, in seconds.
    """

    def __init__(
        self, context: CrawlContext, pace: Pace, *, loads: Loads, agrees: Agreement, item_seconds: float
    ) -> None:
        self._context = context
        self._counters = context.counters
        self._pace = pace
        self._loads = loads
        self._agrees = agrees
        self._item_seconds = item_seconds
        self._reverter = self._new_reverter(RevertRates())
        self._page = SessionPage(context)
        self._stage: _Stage | None = None
        self._why_left: LeaveReason = "chunk"
        self.loader = Loader(context, pace)
        self._other_loader: tuple[str, Loader] | None = None
        """The loader of another session, and the name of that session."""

    @property
    def untouched_state(self) -> str:
        """Id of the state that the page shows as if it had just been loaded; empty if there is none."""
        return self._stage.state.id if self._stage is not None and not self._stage.used else ""

    async def close(self) -> None:
        """Close both pages."""
        await self._renew()
        await self.loader.close()
        await self._close_other_loader()

    async def _close_other_loader(self) -> None:
        other, self._other_loader = self._other_loader, None
        if other is not None:
            await other[1].close()

    async def start_over(self) -> None:
        """Continue in a new session."""
        await self._renew()

    def _new_reverter(self, known: RevertRates) -> Reverter:
        return Reverter(known, self._counters, self._context.is_left_alone)

    def begin_chunk(self, known: RevertRates) -> None:
        """Begin a chunk of work, which must not depend on earlier work: a page that was acted on is not used again.

        Parameters
        ----------
        known
            Rates of the methods to revert at the begin of the round.
        """
        self._reverter = self._new_reverter(known)
        if self._stage is not None and self._stage.used:
            self._stage = None
        if self._stage is not None:
            self._stage.waited = True
        self._why_left = "chunk"

    async def arrive(self, state: Snapshot, route: Sequence[PathStep] | None) -> LeftValues | None:
        """Reach a state. Return what that left in the browser; None if it could not be reached."""
        async with self._pace.hold_slot():
            try:
                async with self._pace.time_limit():
                    return self._context.left_values((await self._reach(state, route)).stored)
            except (TimeoutError, NotReached, BlockedOrRateLimited, BrowserFailure, PlaywrightError) as error:
                log.info("session/not_tried %s: %s", state.url, self._cause(error).message)
                await self._renew()
                return None

    def live_session(self, values: LeftValues) -> LiveSession | None:
        """Return the prepared session with some of the values that the stage's state left; None without any."""
        stage = self._stage
        if stage is None or not values:
            return None
        return LiveSession(name_of(values), lambda: self._loader_in(stage, values, stage.stored))

    async def _loader_in(self, stage: _Stage, values: LeftValues, stored: StoredValues) -> Loader:
        """Return a loader in the prepared session with some of the values that the stage's page holds, of `stored`."""
        name = name_of(values)
        if self._other_loader is not None and self._other_loader[0] == name:
            return self._other_loader[1]
        await self._close_other_loader()
        held = await stage.page.held_session(of_tab=True)
        keys = {(area, key) for area, key, _ in values}
        loader = self.loader.in_session(self._context.session.with_values(held.state, stored, keys))
        self._other_loader = name, loader
        return loader

    async def perform(self, state: Snapshot, candidate: Candidate, route: Sequence[PathStep] | None) -> ActionOutcome:
        """Perform one work item. Failed attempts are repeated as `Retries` allows, most of them in a new session.

        Parameters
        ----------
        state
            Recorded snapshot of the state.
        candidate
            Element and action.
        route
            Steps that lead to the state; None if no route is known.

        Returns
        -------
        ActionOutcome
            Outcome, or the problem of the last attempt.
        """
        async with self._pace.hold_slot():
            return await self._perform(state, candidate, route)

    async def _perform(self, state: Snapshot, candidate: Candidate, route: Sequence[PathStep] | None) -> ActionOutcome:
        retries = Retries()
        cause: FailureCause | None = None
        while not retries.are_exhausted:
            if cause is not None:
                self._counters["explore/retries"] += 1
            try:
                async with self._pace.time_limit():
                    return await self._attempt(state, candidate, route)
            except BlockedOrRateLimited as error:
                cause = error.cause
                retries.record(cause.kind)
                continue  # the pace leaves its host alone before the next visit
            except (TimeoutError, NotActionable, NotReached, BrowserFailure, PlaywrightError) as error:
                cause = self._cause(error)
                await self._check_session(state)
                if self._stays_unactionable(error):
                    # Nothing was done to the page, so that other items can use it.
                    return ActionOutcome(problem=cause.message, failure=cause.kind)
                if route is None and isinstance(error, NotReached | BrowserFailure):
                    break  # a new page does not help without a route
            log.info("explore/not_done %s at %s: %s", candidate.action, state.url, cause.message)
            retries.record(cause.kind)
            await self._renew()
        await self._renew()
        return ActionOutcome(problem=cause.message if cause else "", failure=cause.kind if cause else None)

    async def _check_session(self, state: Snapshot) -> None:
        """Find out whether the session has ended, if a page on the way to a state looked so (LoggedOut)."""
        if (suspect := self._context.login.take_unchecked()) is None:
            return
        try:
            await self.loader.check_session(state.url, suspect)
        except (BrowserFailure, PlaywrightError) as error:
            self._counters["session/not_checked"] += 1
            log.info("session/not_checked %s: %s", state.url, failure_cause(error).message)

    def _cause(self, error: Exception) -> FailureCause:
        if isinstance(error, TimeoutError):
            return FailureCause(FailureKind.TIMEOUT, f"It took longer than {self._item_seconds:.0f} s.")
        return failure_cause(error)

    def _stays_unactionable(self, error: Exception) -> bool:
        """Return whether an element takes no pointer in an unchanged page, and so will not in a new one either.

        In a changed page, the result of an earlier action may cover the element.
        """
        stage = self._stage
        return (
            isinstance(error, NotActionable)
            and error.kind.takes_no_pointer
            and stage is not None
            and stage.snapshot.digest == stage.digest
        )

    # ---- one attempt: reach, act, follow, revert -----------------------------------------------------------------

    async def _attempt(self, state: Snapshot, candidate: Candidate, route: Sequence[PathStep] | None) -> ActionOutcome:
        """Perform an item, and again in another way if that is necessary (`_follow`); at most three times."""
        attempt = _Attempt()
        while True:
            outcome = await self._attempt_once(state, candidate, route, attempt)
            if isinstance(outcome, ActionOutcome):
                return outcome
            attempt = outcome

    async def _attempt_once(
        self, state: Snapshot, candidate: Candidate, route: Sequence[PathStep] | None, attempt: _Attempt
    ) -> ActionOutcome | _Attempt:
        """Perform an item once. Return how it must be attempted instead if it must be repeated."""
        clock = asyncio.get_running_loop()
        stage = await self._reach(state, route)
        was_used = stage.used
        began = clock.time()
        try:
            result = await self._act(stage, candidate, attempt)
        except NotActionable as error:
            if (
                not self._stays_unactionable(error)
                or not _may_load_target(candidate, stage.snapshot, error.kind)
                or self._context.is_pressed_behind_guard(candidate, stage.state)
            ):
                raise
            outcome = await self._load_target(stage, candidate)
            if outcome is None:
                raise
            return outcome
        ms = (clock.time() - began) * 1000
        followed = await self._follow(stage, candidate, result, attempt)
        if isinstance(followed, _Attempt):
            return followed
        await self._leave_as_found(stage, candidate, result, followed.snapshot)
        # No script noticed that a link was clicked, whose document is loaded elsewhere.
        unnoticed = result.stopped.held and followed.snapshot is stage.snapshot and not result.performed.scripted
        stage.used = was_used or not unnoticed or self._page.is_worn
        if attempt.is_double:
            self._leave("silent")  # no digest shows that the handler is another one
        outcome = followed.outcome
        return structs.replace(
            outcome,
            ms=round(outcome.ms + ms, 1),
            noise=stage.noise,
            undone=self._reverter.take_attempts(),
            is_double=attempt.is_double and (outcome.node_id != state.id or outcome.had_effects),
        )

    async def _reach(self, state: Snapshot, route: Sequence[PathStep] | None) -> _Stage:
        """Return a stage that shows a state: the current one, or one at the end of a route."""
        stage = self._stage
        on_the_way = {state.id, *(step.expected_node_id for step in route or ())}
        if stage is not None and stage.state.id in on_the_way and not await self._still_shows(stage):
            stage = None  # it has changed by itself
            self._leave("not_back")
        if stage is not None and stage.state.id == state.id:
            self._counters["reach/already_there"] += 1
            return stage
        if route is None:
            raise NotReached(f"No route to {state.url} is known.")
        # Steps before the state that the page shows already are not repeated.
        shown = stage.state.id if stage is not None and not stage.used else ""
        skipped = next((i + 1 for i, step in reversed(list(enumerate(route))) if step.expected_node_id == shown), 0)
        self._stage = None
        if not skipped:
            await self._page.close_if_worn()
            await self._page.restore()
        page = await self._page.open()
        page.guard.hold_navigations = False
        page.guard.stops_unknown_reads = False
        self._page.requested += 1
        replayed = await replay(page.view, route[skipped:], agrees=self._agrees)
        self._counters["reach/replays"] += 1
        self._counters["reach/steps"] += len(replayed.steps)
        if not skipped:
            is_first = self._why_left == "chunk" and state.id not in self._context.reached
            self._counters[f"load/{'first' if is_first else self._why_left}"] += 1
        self._context.reached.add(state.id)
        snapshot = await self._check_replay(state, route[skipped:], replayed, page)
        noise = noise_between(state, snapshot) if snapshot is not state else NO_NOISE
        stored = await page.stored_values(snapshot)
        self._page.changed |= self._context.session.changed_areas(stored)
        self._stage = _Stage(
            page,
            state,
            snapshot,
            noise,
            stored,
            digest=snapshot.digest,
            hovered=page.view.is_hovering,
            opened_by=_passive_end(route),
        )
        return self._stage

    @staticmethod
    async def _still_shows(stage: _Stage) -> bool:
        """Return whether the page shows its state. One that waits for work since an earlier chunk may have changed."""
        if stage.used or not stage.waited:
            return True
        stage.waited = False
        return (await stage.page.view.settle()).digest == stage.digest

    async def _check_replay(
        self, state: Snapshot, steps: Sequence[PathStep], replayed: ReplayResult, page: GuardedPage
    ) -> Snapshot:
        """Return the snapshot at the end of a complete replay. Raise NotReached for any other."""
        snapshot = replayed.snapshot
        if snapshot is not None and len(replayed.steps) == 1 and steps[0].action.kind == "goto":
            await check_answer(page, snapshot, steps[0].action.url, pace=self._pace, counters=self._counters)
        failed = f"{state.url} could not be reached again"
        if replayed.view is not page.view:
            raise NotReached(f"{failed}: the route opened a tab.")
        if snapshot is not None and snapshot.status >= 500:  # an error page, even if it resembles a small state
            raise NotReached(f"{failed}: {snapshot.url} answers {snapshot.status}.", FailureKind.SERVER_ERROR)
        if snapshot is None or not replayed.complete:
            failure = replayed.failure
            raise NotReached(
                f"{failed}: {replayed.problem}.",
                failure.kind if failure else FailureKind.OTHER,
                net_code=failure.net_code if failure else "",
            )
        return snapshot

    async def _act(self, stage: _Stage, candidate: Candidate, attempt: _Attempt) -> _ActionResult:
        """Perform the action and wait until the page has settled."""
        page, stage.used = stage.page, True
        page.guard.hold_navigations = attempt.hold_navigations
        page.guard.grant(page.page, attempt.sends)
        await self._pace.wait_for_action(stage.state.url)
        # Requests of the page itself until now do not belong to this action.
        page.take_stopped()
        requests = page.guard.requests
        is_pressed = self._context.is_pressed_behind_guard(candidate, stage.state)
        page.guard.stops_unknown_reads = is_pressed
        performed = await page.view.perform(_double(candidate.action) if attempt.is_double else candidate.action)
        # What style sheets show under the pointer does not change the document.
        settled = await page.view.settle(unless_digest="" if keeps_pointer(candidate.action) else stage.snapshot.digest)
        self._pace.note_action(stage.state.url, requested=page.guard.requests > requests)
        self._counters["explore/activations"] += 1
        self._counters["settle/capped"] += int(settled.capped)
        stopped = page.take_stopped()
        self._page.requested += len(stopped.held)
        return _ActionResult(performed, settled, stopped, is_pressed)

    async def _follow(
        self, stage: _Stage, candidate: Candidate, result: _ActionResult, attempt: _Attempt
    ) -> _Followed | _Attempt:
        """Find out where the action led, or how it must be attempted instead (`_other_attempt`)."""
        page, before, settled, held = stage.page, stage.snapshot, result.settled, result.stopped.held
        outcome = _effects(page, result)
        # A script may have moved the focus to where a style sheet shows something.
        is_same = settled.digest == before.digest and (settled.snapshot is None or settled.snapshot.id == before.id)
        unchanged = is_same and not keeps_pointer(candidate.action)
        after = before if unchanged else settled.snapshot or await page.view.observe(digest=False)
        if (other := await self._other_attempt(stage, result, after, attempt)) is not None:
            return other
        if not page.guard.hold_navigations and after.url != before.url:
            await check_answer(page, after, after.raw_url, pace=self._pace, counters=self._counters)
        if result.is_pressed_behind_guard and (held or outcome.blocked):
            # What the page shows follows from the stopped request, and a document could be what changes data.
            refused = () if outcome.blocked else tuple((document.url, "hazard") for document in held)
            outcome = structs.replace(outcome, node_id=stage.state.id, refused=outcome.refused + refused)
            return _Followed(outcome, after)
        if advice := suggest_rule(outcome.blocked, before, after):
            self._context.advise(advice)
        if held:
            if candidate.action.kind == "submit":
                outcome = structs.replace(
                    outcome,
                    blocked=_with_suggestions(outcome.blocked),
                    observed=_with_suggestions(outcome.observed),
                )
            outcome = await self._load(outcome, stage, held[-1].url, held[-1].referrer)
        elif settled.tabs:
            # The click may have changed what decides what the tab shows.
            stored = await page.stored_values(after)
            outcome = await self._load(outcome, stage, settled.tabs[0], before.raw_url, stored)
        elif after.id == before.id:
            outcome = structs.replace(outcome, node_id=stage.state.id)
        else:
            if after.url != before.url and self._context.login.may_be_signed_out(before.raw_url, after):
                await self.loader.check_session(before.raw_url, after)
            outcome = await self._save_new_state(outcome, stage, after)
        return _Followed(outcome, after)

    async def _other_attempt(
        self, stage: _Stage, result: _ActionResult, after: Snapshot, attempt: _Attempt
    ) -> _Attempt | None:
        """Return how the action must be attempted instead; None if this attempt counts.

        It is repeated if it led to another address of the application and sent there what a visit of that address sends
        as well; if its navigation changed the session, and hence must not be held back; and if a click did nothing but
        replace its own handler.
        """
        if sends := await self._sent_by_visit(stage.snapshot, after, result.stopped, attempt):
            other, changed = replace(attempt, sends=sends), await self._changed_areas(stage, after)
        elif after is stage.snapshot and await self._replaced_handler(stage, result, attempt):
            other, changed = replace(attempt, is_double=True), await self._changed_areas(stage, after)
        elif not result.stopped.held or result.is_pressed_behind_guard:
            return None
        elif changed := await self._changed_areas(stage, after):
            other = replace(attempt, hold_navigations=False)
        else:
            return None
        self._leave("another_way")
        self._page.changed |= changed
        return other

    async def _replaced_handler(self, stage: _Stage, result: _ActionResult, attempt: _Attempt) -> bool:
        """Return whether a click without an effect gave its element another handler, which the next click calls."""
        stopped = result.stopped
        if attempt.is_double or result.requested_document or stopped.blocked or not result.performed.handled:
            return False
        return await stage.page.view.has_other_handlers()

    async def _sent_by_visit(
        self, before: Snapshot, after: Snapshot, stopped: StoppedRequests, attempt: _Attempt
    ) -> frozenset[str]:
        """Return the shapes of stopped requests that a visit of the new address sends too; none if they may pass."""
        if after.url == before.url or not stopped.shapes or stopped.held or attempt.sends:
            return frozenset()
        load = await self._loads.get(after.raw_url, self.loader, before.raw_url)
        return stopped.shapes & frozenset(load.sends)

    async def _load(
        self, outcome: ActionOutcome, stage: _Stage, url: str, referrer: str, stored: StoredValues | None = None
    ) -> ActionOutcome:
        """Return the outcome with the result of loading the document that the action requested.

        It is loaded in the session of `stored`; None: of the values when the state was reached.
        """
        stored = stage.stored if stored is None else stored
        values = self._context.values.deciding_in_round(self._context.left_values(stored))
        live = LiveSession(name_of(values), lambda: self._loader_in(stage, values, stored)) if values else None
        self.loader.requested_by = stage.snapshot
        try:
            load = await self._loads.get(url, self.loader, referrer, live)
        finally:
            self.loader.requested_by = None
        return outcome.led_to(load, stage.state.id)

    async def _load_target(self, stage: _Stage, candidate: Candidate) -> ActionOutcome | None:
        """Load the address of a link that takes no pointer. Return None if that shows no other page.

        A menu of which a part lies behind something else may be the only one that links to a page.
        """
        outcome = ActionOutcome(by_address=True, noise=stage.noise)
        outcome = await self._load(outcome, stage, candidate.action.target, stage.snapshot.raw_url)
        if outcome.problem or outcome.node_id == stage.state.id:
            return None
        self._counters["explore/loaded_by_address"] += 1
        return outcome

    async def _save_new_state(self, outcome: ActionOutcome, stage: _Stage, after: Snapshot) -> ActionOutcome:
        """Return the outcome with the state that the stage shows after the action."""
        shown = rebase(after, stage.snapshot, stage.state)
        changed = feature_change(features(stage.snapshot), features(after)) if stage.noise else {}
        key = await self._context.save_snapshot(shown, stage.page.capture)
        left = self._context.left_values(await stage.page.stored_values(after))
        return structs.replace(
            outcome, node_id=shown.id, snapshot_key=key, changed=tuple(sorted(changed.items())), left=left
        )

    async def _leave_as_found(
        self, stage: _Stage, candidate: Candidate, result: _ActionResult, after: Snapshot
    ) -> None:
        """Revert the action, or give the stage up if it does not show its state in an unchanged session again."""
        before = stage.snapshot
        reverted, latest = await self._revert(stage, candidate, result, after)
        if result.stopped.held and reverted and stage.snapshot.digest == before.digest:
            return  # storage was compared in `_follow`, and the document has not changed since
        # Storage is compared after the revert: values that were changed back do not differ.
        changed = await self._changed_areas(stage, latest)
        self._page.changed |= changed
        if changed or not reverted:
            self._leave(self._reason_to_leave(stage, result, after, is_changed=bool(changed)))

    async def _revert(
        self, stage: _Stage, candidate: Candidate, result: _ActionResult, after: Snapshot
    ) -> tuple[bool, Snapshot]:
        """Return whether the stage shows its state again as if nothing had been done, and its latest snapshot."""
        before, view = stage.snapshot, stage.page.view
        requested = result.requested_document
        if stage.hovered:
            # What a click changed would have to be reverted while nothing holds the state open.
            is_left = requested or (candidate.action.kind in _POINTING and not _is_silent(before, after, result))
            if not is_left or not stage.opened_by or result.is_pressed_behind_guard:
                return False, after
            digest = await self._reverter.reopen(view, stage.opened_by, before)
            stage.page.take_stopped()
        elif result.is_pressed_behind_guard:
            # Reverting may press the element again. A form that no script handles leaves nothing to revert.
            return after is before and not result.performed.scripted, after
        elif after is before:
            return requested or not _is_silent(before, after, result), after
        elif requested:
            digest = await is_back(view, before)
        else:
            digest = await self._reverter.restore(view, candidate.action, before, after)
            stage.page.take_stopped()
        if digest is None:
            return False, await view.observe(digest=False)
        stage.snapshot = replace(before, digest=digest)
        return True, before

    def _leave(self, reason: LeaveReason) -> None:
        """Give the stage up: the next item loads a document."""
        self._stage, self._why_left = None, reason

    def _reason_to_leave(
        self, stage: _Stage, result: _ActionResult, after: Snapshot, *, is_changed: bool
    ) -> LeaveReason:
        if is_changed:
            return "session"
        if _is_silent(stage.snapshot, after, result):
            return "silent"
        return "pointer" if stage.hovered else "not_back"

    # ---- the session of the stage --------------------------------------------------------------------------------

    async def _changed_areas(self, stage: _Stage, snapshot: Snapshot) -> frozenset[str]:
        """Return the storage areas that changed since the state was reached."""
        return self._context.session.changed_areas(await stage.page.stored_values(snapshot), since=stage.stored)

    async def _renew(self) -> None:
        """Close the page. The next one starts from the prepared session."""
        self._leave("retry")
        await self._page.close()


def _is_silent(before: Snapshot, after: Snapshot, result: _ActionResult) -> bool:
    """Return whether a handler ran without a visible effect: it may have changed its own state."""
    return after is before and result.performed.handled


def _passive_end(route: Sequence[PathStep]) -> tuple[Action, ...]:
    """Return the actions at the end of a route that only point at elements, in their order."""
    reversed_end = takewhile(lambda step: step.action.kind in _POINTING, reversed(route))
    return tuple(reversed([step.action for step in reversed_end]))


def _double(action: Action) -> Action:
    """Return the double click on the element of a click."""
    return structs.replace(action, kind="dblclick")


def _may_load_target(candidate: Candidate, seen: Snapshot, kind: FailureKind) -> bool:
    """Return whether an element that takes no pointer is a link to another page, whose address tells what it shows.

    A button, or a link with a handler of its own, may do something else than load its address.
    """
    target = candidate.action.target
    return (
        kind in {FailureKind.ELEMENT_COVERED, FailureKind.ELEMENT_OUTSIDE}
        and candidate.action.kind == "click"
        and candidate.action.role != "button"
        and not candidate.handler
        and target.startswith(("http:", "https:"))
        and urldefrag(target).url != urldefrag(seen.raw_url).url
    )


def _with_suggestions(requests: tuple[BlockedRequest, ...]) -> tuple[BlockedRequest, ...]:
    """Return the requests of a search form that led to a document, those of scripts marked as suggestions.

    The document does not depend on them. Only forms that use GET are submitted (`isSearchField` in `js/kinds.js`).
    """
    return tuple(replace(each, kind="suggestion") if each.kind in {"fetch", "xhr"} else each for each in requests)


def _effects(page: GuardedPage, result: _ActionResult) -> ActionOutcome:
    """Return the outcome of an action without the state that it led to."""
    settled, stopped = result.settled, result.stopped
    return ActionOutcome(
        opens_tab=result.performed.new_tab or bool(settled.tabs and not stopped.held),
        blocked=stopped.blocked + settled.stopped,
        observed=stopped.observed,
        refused=stopped.refused,
        dialogs=page.view.dialogs,
        downloads=page.view.downloads,
        other_tabs=settled.tabs[1:],
    )
