"""One worker: shows a state, acts on it in place, follows where that leads, and takes it back."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from playwright.async_api import Error as PlaywrightError

from index.graph import BlockedRequest, PathStep
from pipeline.browser.features import features
from pipeline.browser.gestures import holds
from pipeline.browser.guard import Stopped, advice
from pipeline.browser.replay import Agreement, replay
from pipeline.browser.session import RESTORABLE, GuardedPage, PreparedSession, Stored, kept
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.browser.view import TAKES_NO_POINTER, Acted, NotActionable, Performed, Quiet
from pipeline.explore.identity import NO_NOISE, Noise, change, rebase
from pipeline.explore.loads import (
    LOADS_PER_CONTEXT,
    LOSSES,
    LOST,
    VISITS,
    Loader,
    Loads,
    TakeCapture,
    TurnedAway,
    check_answer,
)
from pipeline.explore.pace import Pace
from pipeline.explore.state import Load, Source
from pipeline.explore.undo import Attempt, Rates, Undo, is_back
from waygraph.errors import BrowserFailure, WaygraphError

log = logging.getLogger(__name__)

#: The same as before, something else, or something else with every session or every time.
Verdict = Literal["", "same", "differs", "session_dependent", "non_deterministic"]

#: An item that failed is tried once more, in fresh pages.
_TRIES = 2


class NotReached(WaygraphError):
    """A recorded state could not be reached again; its work items fail with this reason."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What performing one work item brought about.

    Attributes
    ----------
    node_id : the state that was seen after the action; empty when it could not be performed, or led nowhere.
    look : the key that what was seen is kept by; empty when it was the state that was acted on.
    loaded : the action asked for a document, which was loaded beside: `node_id` is what its URL shows.
    blocked : requests that could change something; they were stopped.
    observed : such requests that the guard was told to let through.
    refused : documents that policy kept the action from loading, with the reason.
    problem : why the item failed; empty when it did not.
    left_out : why it was not tried after all, and what decided that; found out while its level was worked on.
    noise : in what the page that was acted on differed from the recorded look of its state.
    changed : what the action changed in that page (`identity.change`), when there was noise.
    undone : tries to take it back.
    source : who answered, see `Load.source`.
    verdict : how that compares with what an earlier exploration found; empty when there is nothing to compare.
    """

    node_id: str = ""
    loaded: bool = False
    problem: str = ""
    ms: float = 0.0
    opens_tab: bool = False
    blocked: tuple[BlockedRequest, ...] = ()
    observed: tuple[BlockedRequest, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    dialogs: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    other_tabs: tuple[str, ...] = ()
    noise: Noise = NO_NOISE
    changed: tuple[tuple[str, int], ...] = ()
    left_out: tuple[str, str] = ("", "")
    look: str = ""
    undone: tuple[Attempt, ...] = ()
    source: Source = ""
    verdict: Verdict = ""

    @property
    def had_effects(self) -> bool:
        """Whether something came of it besides what the page shows."""
        return bool(self.blocked or self.observed or self.refused or self.dialogs or self.downloads or self.other_tabs)

    def led_to(self, load: Load, state_id: str) -> Outcome:
        """The outcome of an action on the state `state_id` that asked for a document, when this is what it shows."""
        outcome = replace(
            self, ms=load.ms, refused=self.refused + load.refused, downloads=self.downloads + load.downloads
        )
        if not load.node_id and (outcome.refused or outcome.downloads or "ERR_ABORTED" in load.problem):
            # A download, no content, or a document that may not be loaded: the page stays as it is.
            return replace(outcome, node_id=state_id)
        return replace(outcome, node_id=load.node_id, look=load.look, loaded=True, problem=load.problem)


@dataclass(slots=True)
class _Stage:
    """A state that is being shown: by which page, how this very document looks, whether it was acted on."""

    page: GuardedPage
    state: Snapshot
    look: Snapshot
    noise: Noise
    stored: Stored
    """What the site kept in the browser when the state was reached."""
    digest: str
    """Of the document when the state was reached."""
    hovered: bool
    """The pointer holds it open: acting on it ends it, and nothing in the document says so."""
    used: bool = False


@dataclass(frozen=True, slots=True)
class _Happened:
    """What was seen of an action before anything was followed or taken back."""

    performed: Performed
    quiet: Quiet
    stopped: Stopped


class Worker:
    """Acts on one page, the stage, in place, and loads the documents that this asks for in another, the loader.

    So the stage can stay at the state that is being worked on.

    Parameters
    ----------
    open_page : opens a fresh page in the prepared session.
    see : is told every look, and how to capture it while a page shows it; returns the key that it is kept by.
    loads : what URLs show, shared by all workers.
    pace : this worker's slot, and its turns at hosts.
    advise : is told what a user should know of requests whose stopping broke a page.
    agrees : whether what is seen on the way to a state is what the map expects there.
    why : see `Loader`.
    """

    def __init__(
        self,
        open_page: Callable[[], Awaitable[GuardedPage]],
        session: PreparedSession,
        *,
        loads: Loads,
        counters: Counter[str],
        see: Callable[[Snapshot, TakeCapture], Awaitable[str]],
        agrees: Agreement,
        pace: Pace,
        advise: Callable[[str], None],
        item_seconds: float,
        why: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._open_page = open_page
        self._session = session
        self._loads = loads
        self._undo = Undo(Rates(), counters)
        self._counters = counters
        self._see = see
        self._agrees = agrees
        self._item_seconds = item_seconds
        self._page: GuardedPage | None = None
        self._stage: _Stage | None = None
        self._differs: frozenset[str] = frozenset()
        """In what the page's context is known to differ from the prepared session."""
        self._asked_for = 0
        """Documents that were asked for in the page's context, loaded or held back."""
        self._pace = pace
        self._advise = advise
        self.loader = Loader(open_page, session, pace=pace, counters=counters, see=see, advise=advise, why=why)

    async def close(self) -> None:
        """Give both pages back."""
        await self._renew()
        await self.loader.close()

    async def start_over(self) -> None:
        """What is done next is done in a fresh session."""
        await self._renew()

    def begin_chunk(self, undo: Undo) -> None:
        """What is done next does not build on what was done before: a page that was acted on is not used again.

        `undo` takes its changes back.
        """
        self._undo = undo
        if self._stage is not None and self._stage.used:
            self._stage = None

    async def perform(self, state: Snapshot, candidate: Candidate, way: Sequence[PathStep] | None) -> Outcome:
        """Reach `state`, act on `candidate`, say what happened. Tried once more in a fresh session when it fails."""
        async with self._pace.busy():
            return await self._perform(state, candidate, way)

    async def _perform(self, state: Snapshot, candidate: Candidate, way: Sequence[PathStep] | None) -> Outcome:
        problem = ""
        failed = lost = turned_away = 0
        while failed < _TRIES and turned_away < VISITS:
            if problem:
                self._counters["explore/retries"] += 1
            try:
                async with self._pace.limited():
                    return await self._try(state, candidate, way)
            except TurnedAway as error:
                problem, turned_away = error.message, turned_away + 1
                continue  # its host is left alone before the next visit
            except (TimeoutError, NotActionable, NotReached, BrowserFailure, PlaywrightError) as error:
                problem = self._problem(error)
                if isinstance(error, NotActionable) and self._is_covered(error):
                    return Outcome(problem=problem)  # nothing was done to the page, which others can be acted on in
                if self._is_final(error, has_way=way is not None):
                    break
            log.info("explore/not_done %s at %s: %s", candidate.action, state.url, problem)
            is_lost = LOST in problem and lost < LOSSES
            lost, failed = lost + is_lost, failed + (not is_lost)
            await self._renew()
        await self._renew()
        return Outcome(problem=problem)

    def _problem(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"It took longer than {self._item_seconds:.0f} s."
        return error.message if isinstance(error, WaygraphError) else str(error).splitlines()[0]

    def _is_final(self, error: Exception, *, has_way: bool) -> bool:
        """Whether trying again in a fresh page cannot help."""
        return isinstance(error, NotReached | BrowserFailure) and not has_way

    def _is_covered(self, error: NotActionable) -> bool:
        """Whether an element takes no pointer in a page as it was when it was reached, and so will not in a fresh one.

        In another page something that was done before may be in the way.
        """
        stage = self._stage
        return TAKES_NO_POINTER in error.message and stage is not None and stage.look.digest == stage.digest

    async def _try(self, state: Snapshot, candidate: Candidate, way: Sequence[PathStep] | None) -> Outcome:
        """First with navigations held back; when the action changed the session, once more and really leaving."""
        outcome = None
        for hold in (True, False):
            stage = await self._reach(state, way)
            began = asyncio.get_running_loop().time()
            happened = await self._act(stage, candidate, hold=hold)
            ms = (asyncio.get_running_loop().time() - began) * 1000
            outcome = await self._follow(stage, candidate, happened)
            if outcome is not None:
                undone = self._undo.take_attempts()
                return replace(outcome, ms=round(outcome.ms + ms, 1), noise=stage.noise, undone=undone)
        raise AssertionError("what is not held back has an outcome")

    async def _act(self, stage: _Stage, candidate: Candidate, *, hold: bool) -> _Happened:
        page, stage.used = stage.page, True
        page.guard.hold = hold
        await self._pace.before_action(stage.state.url)
        # Where the page wanted to go by itself until now is not this action's doing.
        page.take_stopped()
        requests = page.guard.requests
        performed = await page.view.perform(candidate.action)
        # What style sheets alone show under the pointer changes nothing in the document.
        quiet = await page.view.settle(unless="" if holds(candidate.action) else stage.look.digest)
        self._pace.after_action(stage.state.url, requested=page.guard.requests > requests)
        self._counters["explore/activations"] += 1
        self._counters["settle/capped"] += int(quiet.capped)
        stopped = page.take_stopped()
        self._asked_for += len(stopped.held)
        return _Happened(performed, quiet, stopped)

    async def _follow(self, stage: _Stage, candidate: Candidate, happened: _Happened) -> Outcome | None:
        """Where did the action lead? Nothing when its navigation must not be held back."""
        page, before, quiet, held = stage.page, stage.look, happened.quiet, happened.stopped.held
        outcome = Outcome(
            opens_tab=happened.performed.new_tab or bool(quiet.tabs and not held),
            blocked=happened.stopped.blocked + quiet.stopped,
            observed=happened.stopped.observed,
            refused=happened.stopped.refused,
            dialogs=page.view.dialogs,
            downloads=page.view.downloads,
            other_tabs=quiet.tabs[1:],
        )
        same = quiet.digest == before.digest and not holds(candidate.action)
        seen = before if same else quiet.look or await page.view.observe(digest=False)
        if not page.guard.hold and seen.url != before.url:
            await check_answer(page, seen, seen.raw_url, pace=self._pace, counters=self._counters)
        if said := advice(outcome.blocked, before, seen):
            self._advise(said)
        if held and (changed := await self._changed_areas(stage, seen)):
            self._stage = None
            self._differs |= changed
            return None
        if held:
            outcome = await self._load(outcome, stage, held[-1].url, held[-1].referrer)
        elif quiet.tabs:
            outcome = await self._load(outcome, stage, quiet.tabs[0], before.raw_url)
        elif seen.id == before.id:
            outcome = replace(outcome, node_id=stage.state.id)
        else:
            shown = rebase(seen, before, stage.state)
            changed_features = change(features(before), features(seen)) if stage.noise else {}
            look = await self._see(shown, lambda: page.capture(Acted("", shown, None, (), (), 0.0)))
            outcome = replace(outcome, node_id=shown.id, look=look, changed=tuple(sorted(changed_features.items())))
        taken_back, shown_last = await self._take_back(stage, candidate, happened, seen)
        if held and taken_back and stage.look.digest == before.digest:
            return outcome  # it was asked before; since then nothing changed that a script could read
        # Asked once, when all is done: what was changed and changed back differs no more.
        changed = await self._changed_areas(stage, shown_last)
        self._differs |= changed
        if changed or not taken_back:
            self._stage = None
        return outcome

    async def _load(self, outcome: Outcome, stage: _Stage, url: str, referrer: str) -> Outcome:
        """What the document shows that an action asked for."""
        self.loader.left = stage.look
        try:
            load = await self._loads.get(url, self.loader, referrer)
        finally:
            self.loader.left = None
        return outcome.led_to(load, stage.state.id)

    async def _take_back(
        self, stage: _Stage, candidate: Candidate, happened: _Happened, seen: Snapshot
    ) -> tuple[bool, Snapshot]:
        """Whether the stage shows its state again, as if nothing had been done, and the latest look at it."""
        before, view = stage.look, stage.page.view
        held = bool(happened.stopped.held or happened.quiet.tabs)
        if stage.hovered or (not held and self._session.changed_areas(kept(seen), since=kept(before))):
            return False, seen
        if seen is before:
            # A handler that changed nothing to be seen may have changed what it remembers.
            return held or not happened.performed.handled, seen
        if held:
            digest = await is_back(view, before)
        else:
            digest = await self._undo.restore(view, candidate.action, before, seen.raw_url)
            stage.page.take_stopped()
        if digest is None:
            return False, await view.observe(digest=False)
        stage.look = replace(before, digest=digest)
        return True, before

    async def _reach(self, state: Snapshot, way: Sequence[PathStep] | None) -> _Stage:
        stage = self._stage
        if stage is not None and stage.state.id == state.id:
            self._counters["reach/already_there"] += 1
            return stage
        if way is None:
            raise NotReached(f"No way back to {state.url} is known.")
        # The way may lead through where the page already is.
        here = stage.state.id if stage is not None and not stage.used else ""
        done = next((i + 1 for i, step in reversed(list(enumerate(way))) if step.expected_node_id == here), 0)
        self._stage = None
        if not done:
            await self._prepare()
        if self._page is None:
            self._page = await self._open_page()
            self._counters["browser/contexts"] += 1
        self._page.guard.hold = False
        self._asked_for += 1
        replayed = await replay(self._page.view, way[done:], agrees=self._agrees)
        self._counters["reach/replays"] += 1
        self._counters["reach/steps"] += len(replayed.walked)
        seen = replayed.snapshot
        if seen is not None and len(replayed.walked) == 1 and way[done].action.kind == "goto":
            await check_answer(self._page, seen, way[done].action.url, pace=self._pace, counters=self._counters)
        if replayed.view is not self._page.view:
            raise NotReached(f"{state.url} could not be reached again: the way opened a tab.")
        if seen is not None and seen.status >= 500:  # no state, however alike a small page may look
            raise NotReached(f"{state.url} could not be reached again: {seen.url} answers {seen.status}.")
        if seen is None or not replayed.complete:
            raise NotReached(f"{state.url} could not be reached again: {replayed.problem}.")
        noise = Noise.between(state, seen) if seen is not state else NO_NOISE
        stored = await self._page.stored(seen)
        self._differs |= self._session.changed_areas(stored)
        self._stage = _Stage(
            self._page, state, seen, noise, stored, digest=seen.digest, hovered=self._page.view.hovering
        )
        return self._stage

    async def _changed_areas(self, stage: _Stage, seen: Snapshot) -> frozenset[str]:
        """What was changed of what the site keeps in the browser since the state was reached."""
        return self._session.changed_areas(await stage.page.stored(seen), since=stage.stored)

    async def _prepare(self) -> None:
        """Bring back the prepared session: what is stored now is what was done before, or what other pages keep."""
        if self._asked_for >= LOADS_PER_CONTEXT:
            await self._renew()
        if not self._differs or self._page is None:
            return
        if self._differs <= RESTORABLE:
            self._counters["session/resets"] += 1
            await self._page.restore_storage(self._session)
            self._differs = frozenset()
        else:
            self._counters["session/renewals"] += 1
            await self._renew()

    async def _renew(self) -> None:
        """Leave the page that is acted on; the next one starts from the prepared session again."""
        page, self._page, self._stage = self._page, None, None
        self._differs, self._asked_for = frozenset(), 0
        if page is not None:
            await page.close()
