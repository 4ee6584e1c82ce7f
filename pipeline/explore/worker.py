"""One page at work: reach a state, perform an action on it, capture what is new."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from playwright.async_api import Error as PlaywrightError

from index.graph import BlockedRequest, PathStep, similarity
from pipeline.browser.replay import replay
from pipeline.browser.session import Capture, GuardedPage, PreparedSession
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.browser.view import Acted, NotActionable
from waygraph.errors import BrowserFailure, WaygraphError

#: A state that looks this much like the recorded one (Jaccard over element hashes, same URL) may stand in for it.
STAND_IN_SIMILARITY = 0.9


#: One work item takes no longer, whatever its pages do.
ITEM_LIMIT_S = 120.0


class NotReached(WaygraphError):
    """A recorded state could not be reached again; its work items fail with this reason."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What performing one work item brought about.

    Attributes
    ----------
    snapshot : what was seen after the action; nothing when the action could not be performed.
    refused : documents that policy kept the action from loading, with the reason.
    problem : why the item failed; empty when it did not.
    """

    snapshot: Snapshot | None
    problem: str = ""
    ms: float = 0.0
    opens_tab: bool = False
    blocked: tuple[BlockedRequest, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    dialogs: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    other_tabs: tuple[str, ...] = ()


class Worker:
    """Owns one guarded page. Every work item starts from the prepared session; it is renewed when an item changed it.

    Parameters
    ----------
    open_page : opens a fresh page in the prepared session.
    capture : called with what an action led to and a function that captures it, while the page still shows it.
    """

    def __init__(
        self,
        open_page: Callable[[], Awaitable[GuardedPage]],
        session: PreparedSession,
        counters: Counter[str],
        capture: Callable[[Snapshot, Callable[[], Awaitable[Capture]]], Awaitable[None]],
    ) -> None:
        self._open_page = open_page
        self._session = session
        self._counters = counters
        self._capture = capture
        self._page: GuardedPage | None = None
        self.at: str | None = None
        """The state that the page shows, not acted on since it was reached: a page that was acted on is never reused,
        since scripts may remember what no element shows."""

    async def close(self) -> None:
        """Give the page back."""
        page, self._page, self.at = self._page, None, None
        if page is not None:
            await page.close()

    async def load(self, url: str, *, capture: bool = False) -> Acted:
        """Load `url` in the prepared session.

        Raises
        ------
        BrowserFailure
            When it cannot be loaded.
        """
        page = await self._fresh_page()
        acted = await page.view.goto(url)
        page.take_stopped()
        self._counters["browser/loads"] += 1
        self.at = acted.snapshot.id
        if capture:
            await self._capture(acted.snapshot, lambda: page.capture(acted))
        await self._renew_if_changed(page, acted.snapshot)
        return acted

    async def perform(self, state: Snapshot, candidate: Candidate, way: Sequence[PathStep] | None) -> Outcome:
        """Reach `state`, act on `candidate`, say what happened. Tried once more in a fresh session when it fails."""
        problem = ""
        for attempt in range(2):
            if attempt:
                self._counters["explore/retries"] += 1
                await self.close()
            try:
                async with asyncio.timeout(ITEM_LIMIT_S):
                    return await self._try(state, candidate, way)
            except TimeoutError:
                problem = f"It took longer than {ITEM_LIMIT_S:.0f} s."
            except NotActionable as error:
                # What covers the element now will cover it again.
                problem = error.message
                if "takes no pointer" in problem:
                    break
            except (NotReached, BrowserFailure) as error:
                problem = error.message
                if way is None:
                    break
            except PlaywrightError as error:
                problem = str(error).splitlines()[0]
        await self.close()
        return Outcome(None, problem=problem)

    async def _try(self, state: Snapshot, candidate: Candidate, way: Sequence[PathStep] | None) -> Outcome:
        await self._reach(state, way)
        page = await self._fresh_page()
        page.take_stopped()
        self.at = None
        acted = await page.view.act(candidate.action)
        snapshot = acted.snapshot
        stopped = page.take_stopped()
        self._counters["explore/activations"] += 1
        self._counters["settle/capped"] += int(snapshot.capped)
        await self._capture(snapshot, lambda: page.capture(acted))
        if acted.popup is not None:
            await acted.popup.page.close()
        await self._renew_if_changed(page, snapshot)
        return Outcome(
            snapshot,
            ms=acted.ms,
            opens_tab=acted.opens_tab,
            blocked=stopped.blocked + acted.stopped,
            refused=stopped.refused,
            dialogs=acted.dialogs,
            downloads=acted.downloads,
            other_tabs=acted.other_tabs,
        )

    async def _reach(self, state: Snapshot, way: Sequence[PathStep] | None) -> None:
        if self.at == state.id:
            self._counters["reach/already_there"] += 1
            return
        if way is None:
            raise NotReached(f"No way back to {state.url} is known.")
        # The way may lead through where the page already is.
        done = next((i + 1 for i, step in reversed(list(enumerate(way))) if step.expected_node_id == self.at), 0)
        self.at = None
        page = await self._fresh_page()
        replayed = await replay(page.view, way[done:])
        self._counters["reach/replays"] += 1
        self._counters["reach/steps"] += len(replayed.walked)
        if replayed.complete:
            return
        seen = replayed.snapshot
        last = len(replayed.walked) == len(way) - done
        if (
            last
            and seen
            and seen.url == state.url
            and similarity(seen.structure, state.structure) >= STAND_IN_SIMILARITY
        ):
            self._counters["reach/stand_ins"] += 1
            return
        raise NotReached(f"{state.url} could not be reached again: {replayed.problem}.")

    async def _fresh_page(self) -> GuardedPage:
        if self._page is None:
            self._page = await self._open_page()
            self._counters["browser/contexts"] += 1
        return self._page

    async def _renew_if_changed(self, page: GuardedPage, snapshot: Snapshot) -> None:
        if self._session.is_changed(await page.stored(snapshot)):
            self._counters["session/renewals"] += 1
            await self.close()
