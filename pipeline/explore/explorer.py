"""How is a whole site explored? Adaptive breadth-first search over page states (WebNavigator, Alg. 1)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence

from playwright.async_api import Browser

from index.graph import PathStep
from pipeline.browser.session import GuardedPage
from pipeline.browser.snapshot import Candidate, Lens, Snapshot
from pipeline.explore.account import Account
from pipeline.explore.assemble import build_graph, build_observations
from pipeline.explore.capture import BlobSink, ExploreProgress, SiteCapture, Skip
from pipeline.explore.difference import split_candidates
from pipeline.explore.explain import refused
from pipeline.explore.growth import Growth, State
from pipeline.explore.level import Item, Level
from pipeline.explore.loads import Loads, TakeCapture
from pipeline.explore.looks import Looks, MemoryLooks
from pipeline.explore.policy import Refusal
from pipeline.explore.start import Start
from pipeline.explore.state import Load
from pipeline.explore.undo import Undo
from pipeline.explore.ways import Ways
from pipeline.explore.worker import Worker
from waygraph.errors import BrowserFailure
from waygraph.settings import Settings

log = logging.getLogger(__name__)


class Explorer:
    """Explores one site in one browser. Create it, `run` it once.

    Parameters
    ----------
    start : the prepared start page: session, scope, policies.
    stop : set it to end the run early; what was found until then is returned, marked partial.
    """

    def __init__(
        self,
        browser: Browser,
        start: Start,
        *,
        settings: Settings,
        blobs: BlobSink,
        on_progress: Callable[[ExploreProgress], None],
        stop: asyncio.Event,
    ) -> None:
        self._browser = browser
        self._start = start
        self._settings = settings
        self._on_progress = on_progress
        self._stop = stop
        self._lens = Lens.of(settings.browser, settings.explore)
        self.account = Account(start_url=start.url)
        counters = self.account.counters
        self._looks = Looks(MemoryLooks(), blobs, counters, {})
        self._growth = Growth(start.scope, self.account, self._looks.get, max_states=settings.explore.max_states)
        self._loads = Loads(settings.explore.url_policy, self._record_load)
        self._undo = Undo(counters)

    async def run(self) -> SiteCapture:
        """Explore to the configured depth or to the first limit that is met.

        Raises
        ------
        BrowserFailure
            When the browser itself is lost.
        """
        explore = self._settings.explore
        workers = [self._worker() for _ in range(explore.workers)]
        try:
            frontier = [await self._first_state(workers[0])]
            for depth in range(explore.depth):
                if not frontier or self.account.stopped_by:
                    break
                frontier = await self._expand(frontier, depth, workers)
            await self._probe_all(frontier, workers)
        finally:
            await asyncio.gather(*(worker.close() for worker in workers))
        return self._result()

    # ---- one level ---------------------------------------------------------------------------------------------

    async def _expand(self, frontier: Sequence[State], depth: int, workers: Sequence[Worker]) -> list[State]:
        """Act on every new element of the states of one level; the states found make up the next (Alg. 1, l. 5-24)."""
        began = time.monotonic()
        states, counters = self._growth.states, self.account.counters
        before, activated = len(states), counters["explore/activations"]
        await self._probe_all(frontier, workers)
        ways = Ways({s.id: s.url for s in states.values() if self._is_addressable(s)}, self._growth.edges)
        level = Level(self._items(frontier), lambda item, outcome: self._growth.commit(item, outcome, depth + 1))

        async def work(worker: Worker) -> None:
            while not self._must_stop() and (chunk := level.take()):
                worker.begin_chunk()
                state, way = self._looks.get(chunk[0].state_id), self._way_to(chunk[0].state_id, ways)
                for item in chunk:
                    if level.closed or self._must_stop():
                        return
                    outcome = await worker.perform(state, item.candidate, way)
                    if not self._browser.is_connected():
                        raise BrowserFailure(f"The browser died while exploring {self._start.site}.")
                    level.done(item, outcome)
                    self._report_progress(depth, level.pending)

        await _all(work(worker) for worker in workers)
        if self.account.partial:
            level.stop()
        found = list(states.values())[before:]
        activations = counters["explore/activations"] - activated
        self.account.finish_depth(depth + 1, len(found), activations, time.monotonic() - began)
        return found

    def _items(self, frontier: Sequence[State]) -> list[Item]:
        """Work of one level in canonical order: states as they were found, elements in document order."""
        items: list[Item] = []
        account, explore = self.account, self._settings.explore
        budget = explore.max_activations - account.planned
        for state in frontier:
            seen = self._looks.get(state.id)
            parent = self._looks.get(state.parent) if state.parent else None
            new, old = split_candidates(seen, parent, explore.diff)
            account.counters["diff/saved"] += sum(1 for c in old if self._refusal(c, seen) is None)
            for candidate in new:
                if refusal := self._refusal(candidate, seen):
                    account.skip(refused(state.id, candidate, refusal))
                elif len(items) >= budget:
                    account.skip(Skip(state.id, "max_activations", str(candidate.action)))
                    account.stopped_by = "max_activations"
                else:
                    items.append(Item(len(items), state.id, candidate))
        account.planned += len(items)
        return items

    def _refusal(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:
        return next((no for policy in self._start.policies if (no := policy.refuse(candidate, seen))), None)

    # ---- reaching states -----------------------------------------------------------------------------------------

    def _way_to(self, node_id: str, ways: Ways) -> tuple[PathStep, ...] | None:
        return ways.to(node_id, {each: state.url for each, state in self._growth.states.items()})

    async def _probe_all(self, states: Sequence[State], workers: Sequence[Worker]) -> None:
        """Find out which states their URLs reproduce."""
        urls = iter(dict.fromkeys(state.url for state in states))

        async def probe(worker: Worker) -> None:
            for url in urls:
                if self._must_stop():
                    return
                await self._loads.get(url, worker.loader)

        await _all(probe(worker) for worker in workers)

    def _is_addressable(self, state: State) -> bool:
        return self._loads.node_at(state.url) == state.id

    async def _first_state(self, worker: Worker) -> State:
        began = time.monotonic()
        load = await self._loads.get(self._start.url, worker.loader)
        if not load.node_id:
            raise BrowserFailure(f"{self._start.url} loaded, and then did not any more: {load.problem}")
        state = self._growth.begin(self._looks.get(load.node_id))
        self._loads.know(state.url, load)
        self.account.finish_depth(0, 1, 0, time.monotonic() - began)
        return state

    async def _see(self, seen: Snapshot, take: TakeCapture) -> None:
        """Keep a look; what is no page of this site is not captured."""
        wanted = seen.is_page and not self._start.scope.refuse_url(seen.raw_url)
        await self._looks.see(seen, take, capture=wanted)

    async def _record_load(self, url: str, load: Load) -> None:
        pass

    # ---- the run as a whole --------------------------------------------------------------------------------------

    def _worker(self) -> Worker:
        async def open_page() -> GuardedPage:
            return await self._start.open_page(self._browser, self._lens, self._settings)

        return Worker(
            open_page,
            self._start.session,
            loads=self._loads,
            undo=self._undo,
            counters=self.account.counters,
            see=self._see,
            item_seconds=self._settings.explore.page_seconds,
        )

    def _must_stop(self) -> bool:
        if self._stop.is_set():
            self.account.interrupt("interrupted")
        elif self.account.seconds > self._settings.explore.max_seconds:
            self.account.interrupt("max_seconds")
        return self.account.partial

    def _report_progress(self, depth: int, pending: int) -> None:
        self._on_progress(
            ExploreProgress(
                site=self._start.site,
                depth=depth + 1,
                states=len(self._growth.states),
                edges=len(self._growth.edges),
                activations=self.account.counters["explore/activations"],
                pending=pending,
                skipped=self.account.skipped,
                failed=self.account.failed,
            )
        )

    def _result(self) -> SiteCapture:
        states, look = self._growth.states, self._looks.get
        graph = build_graph(states, self._growth.edges, self._loads.all(), self._settings.explore.diff, look)
        profile = {**self._settings.capture.model_dump(), "user_agent": self._start.user_agent}
        return SiteCapture(
            site=self._start.site,
            start_url=self._start.url,
            graph=graph,
            observations=build_observations(states, self._looks.captured, look),
            report=self.account.report(),
            profile=profile,
        )


async def _all(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Run all at once; when one raises, cancel and await the others, then raise that very error."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
