"""How is a whole site explored? Adaptive breadth-first search over page states (WebNavigator, Alg. 1)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from itertools import islice

from playwright.async_api import Error as PlaywrightError

from index.graph import Observation, PathStep, Recognition, similarity
from index.store.fates import fates_table
from pipeline.browser.session import GuardedPage
from pipeline.browser.snapshot import Lens, Snapshot
from pipeline.browser.supervise import BrowserLease
from pipeline.explore.account import Account
from pipeline.explore.assemble import build_graph, build_observations
from pipeline.explore.capture import BlobSink, ExploreProgress, SiteCapture
from pipeline.explore.frontier import Frontier
from pipeline.explore.growth import Growth
from pipeline.explore.identity import Recogniser, Skeleton
from pipeline.explore.identity.evidence import evidence
from pipeline.explore.identity.siblings import Siblings
from pipeline.explore.identity.traps import Traps
from pipeline.explore.journal import Journal
from pipeline.explore.level import Item, Level
from pipeline.explore.loads import Loads, TakeCapture
from pipeline.explore.login import LoginWatch
from pipeline.explore.looks import Looks
from pipeline.explore.memory import Memory
from pipeline.explore.pace import Pace
from pipeline.explore.pacing import Pacer
from pipeline.explore.refresh import Recall, Visit
from pipeline.explore.slots import Slots
from pipeline.explore.start import Start
from pipeline.explore.state import State
from pipeline.explore.undo import RatesByLevel, Undo
from pipeline.explore.ways import Ways
from pipeline.explore.worker import Outcome, Worker
from waygraph.errors import BrowserFailure, WaygraphError
from waygraph.settings import Settings

log = logging.getLogger(__name__)

#: A page that looks this much like a recorded state (Jaccard over element hashes, same URL) may stand in for it on the
#: way to a work item.
STAND_IN_SIMILARITY = 0.9
#: After so many commits in a level a checkpoint is written: a resumed run has no more than these to take in again.
_COMMITS_PER_CHECKPOINT = 500


class NoBrowserError(Exception):
    """No page can be opened any more: not the failure of a work item, but the end of the run."""


class Explorer:
    """Explores one site in one browser at a time. Create it, `run` it once.

    Parameters
    ----------
    browsers : the browser that is used, and how to get another one when it is lost.
    start : the prepared start page: session, scope, policies.
    pacer, slots : when hosts may be asked, and how many pages may be busy; shared with other explorations.
    journal : holds what an earlier process found, and takes down what this one finds.
    counters : what is counted, see docs/counters.md.
    stop : set it to end the run early; what was found until then is returned, marked partial.
    on_state : told what each state looks like as soon as it is part of the map; exploring waits for it.
    recall : what an earlier exploration of the site found.
    """

    def __init__(
        self,
        browsers: BrowserLease,
        start: Start,
        *,
        pacer: Pacer,
        slots: Slots,
        journal: Journal,
        settings: Settings,
        blobs: BlobSink,
        counters: Counter[str],
        on_progress: Callable[[ExploreProgress], None],
        stop: asyncio.Event,
        on_state: Callable[[Observation], Awaitable[None]] | None = None,
        recall: Recall | None = None,
    ) -> None:
        explore = settings.explore
        recall = recall or Recall.nothing(explore.url_policy)
        self._browsers = browsers
        self._start = start
        self._pacer = pacer
        self._slots = slots
        self._journal = journal
        self._settings = settings
        self._on_progress = on_progress
        self._stop = stop
        self._on_state = on_state
        self._told_states = 0
        """States that `on_state` was told of."""
        self._sink = blobs
        self._lens = Lens.of(settings.browser, explore, start.scope.frames)
        self._resumed = journal.last()
        self.account = Account(start_url=start.url, counters=counters)
        captured = {**recall.captures(), **(self._resumed.captures if self._resumed else {})}
        self._looks = Looks(journal, blobs, counters, captured, start.redactor)
        self._visit = Visit(recall, looks=self._looks, journal=journal, counters=counters)
        skeleton = Skeleton(explore.url_policy, self._looks.get) if explore.mode == "skeleton" else None
        recogniser = Recogniser(explore.identity, explore.url_policy, self._looks.get, skeleton=skeleton)
        traps = Traps(explore.trap_budget, recogniser.key, skeleton=skeleton)
        self._siblings = Siblings(explore.alike_budget)
        self._skeleton = skeleton
        self._recogniser = recogniser
        self._growth = Growth(
            start.scope,
            self.account,
            recogniser,
            traps,
            self._looks,
            siblings=self._siblings,
            max_states=explore.max_states,
        )
        self._frontier = Frontier(
            start.policies,
            self.account,
            self._looks,
            traps=traps,
            siblings=self._siblings,
            skeleton=skeleton,
            settings=explore,
            made_by=self._growth.made_by,
        )
        self._loads = Loads(explore.url_policy, journal.record_load, self._visit.ask)
        self._rates = RatesByLevel()
        self._memory = Memory(self._growth, self.account, self._loads, self._rates, start.robots)
        self._watch = LoginWatch(start.site, start.logged_in)
        self._cap: int | None = None
        """The item of the last level at which a cap cut it off."""

    async def run(self) -> SiteCapture:
        """Explore to the configured depth or to the first limit that is met, or go on where an earlier process ended.

        Raises
        ------
        BrowserFailure
            When the browser itself is lost.
        """
        explore = self._settings.explore
        workers = [self._worker() for _ in range(explore.workers)]
        level = 0
        try:
            if self._resumed is not None:
                await self._memory.recall(self._resumed)
                level = self._resumed.depth
            else:
                await self._first_state(workers[0])
            await self._tell_states()
            while level < explore.depth and not self._has_ended() and (states := self._at_depth(level)):
                if self._browsers.is_stale:
                    await asyncio.gather(*(worker.close() for worker in workers))
                await self._expand(states, level, workers)
                level += 1
            await self._unless_stopped(self._probe_all(self._at_depth(level), workers))
            self._take_probes(self._at_depth(level))
            if not self.account.partial:
                known, loads = self._growth.states, self._loads.all()
                await self._unless_stopped(self._visit.examine(known, loads, workers[0].loader, self._noise_at))
        except NoBrowserError as error:
            raise BrowserFailure(f"The browser was lost while exploring {self._start.site}: {error}") from error
        finally:
            await asyncio.gather(*(worker.close() for worker in workers))
        return await self._result()

    def _has_ended(self) -> bool:
        """Whether no further level is begun. What an earlier process began is gone on with, whatever limit it met."""
        return self.account.partial or (self._resumed is None and bool(self.account.stopped_by))

    # ---- one level ---------------------------------------------------------------------------------------------

    async def _expand(self, states: Sequence[State], depth: int, workers: Sequence[Worker]) -> None:
        """Act on every new element of the states of one level; the states found make up the next (Alg. 1, l. 5-24)."""
        began, counters = time.monotonic(), self.account.counters
        activated = counters["explore/activations"]
        await self._unless_stopped(self._probe_all(states, workers))
        if self._resumed is None:
            if self._must_stop():
                return
            self._take_probes(states)
            self._rates.begin_level()
            self._siblings.begin_level()
        ways = self._ways(depth)
        level = await self._plan(states, depth)

        async def work(worker: Worker) -> None:
            while not self._must_stop() and (chunk := level.take()):
                await self._work_off(chunk, level, worker, ways, depth)

        await self._unless_stopped(_all(work(worker) for worker in workers))
        if level.closed:
            self._cap = level.committed
        if self.account.partial:
            level.stop()
        found = len(self._at_depth(depth + 1))
        activations = counters["explore/activations"] - activated
        self.account.finish_depth(depth + 1, found, activations, time.monotonic() - began)

    async def _plan(self, states: Sequence[State], depth: int) -> Level:
        """The level's work: planned now and written down, or what an earlier process left of it."""
        resumed, self._resumed = self._resumed, None
        if resumed is None:
            if self._start.robots is not None:
                await self._start.robots.prefetch(self._links(states))
            items = self._frontier.items(states)
            planned = [(item.state_id, item.candidate) for item in items]
            await self._journal.begin_level(depth, planned, self._memory.checkpoint())
            return Level(items, lambda item, outcome: self._commit(item, outcome, depth + 1))
        items = [Item(i, state_id, candidate) for i, (state_id, candidate) in enumerate(resumed.items)]
        level = Level(
            items,
            lambda item, outcome: self._commit(item, outcome, depth + 1),
            committed=resumed.committed,
            done=resumed.outcomes.keys(),
            closed=self.account.stopped_by == "max_states",
        )
        for index, outcome in resumed.outcomes.items():
            level.done(items[index], outcome)
        self.account.counters["explore/resumed_items"] += len(resumed.outcomes)
        return level

    async def _work_off(self, chunk: Sequence[Item], level: Level, worker: Worker, ways: Ways, depth: int) -> None:
        worker.begin_chunk(Undo(self._rates.known, self.account.counters))
        look, way = self._growth.states[chunk[0].state_id].look, ways.to(chunk[0].state_id)
        for item in chunk:
            if level.closed or self._must_stop():
                return
            refusal = self._frontier.refuse_now(item)
            outcome = (
                Outcome(left_out=(refusal.reason, refusal.detail))
                if refusal is not None
                else await self._visit.perform(
                    worker, item, way, look=look, load=self._loads.get, reachable=not self._is_kept(way)
                )
            )
            await self._journal.record(depth, item.index, outcome)
            committed = level.committed
            level.done(item, outcome)
            if level.committed // _COMMITS_PER_CHECKPOINT != committed // _COMMITS_PER_CHECKPOINT:
                await self._journal.save(depth, level.committed, self._memory.checkpoint())
            self._report_progress(depth, level.pending)
            await self._tell_states()

    async def _tell_states(self) -> None:
        """Say what the states look like that were committed since the last time."""
        while self._on_state is not None and self._told_states < len(self._growth.states):
            # Counted before the wait, in which other workers get here.
            node_id = next(islice(self._growth.states, self._told_states, None))
            self._told_states += 1
            seen = build_observations({node_id: self._growth.states[node_id]}, self._looks.captured, self._looks.get)
            await self._on_state(self._start.redactor.observation(seen[node_id]))

    def _commit(self, item: Item, outcome: Outcome, depth: int) -> bool:
        # What was found out while the item was under way decides here, where the order is canonical.
        if refusal := self._frontier.refuse_at_last(item):
            outcome = Outcome(left_out=(refusal.reason, refusal.detail))
        elif outcome.left_out[0] and (page := self._recogniser.loaded_as(item.candidate.action.target)):
            # A worker left it alone; before its turn came the page was visited from elsewhere.
            outcome = Outcome(page, loaded=True)
        self._rates.add(outcome.undone)
        return self._growth.commit(item, outcome, depth)

    def _links(self, states: Iterable[State]) -> Iterator[str]:
        """Where links of these states lead within the scope."""
        for state in states:
            for candidate in self._looks.get(state.id).candidates:
                if self._start.scope.refuse_url(candidate.action.target) is None:
                    yield candidate.action.target

    # ---- reaching states -----------------------------------------------------------------------------------------

    def _ways(self, depth: int) -> Ways:
        """Ways over what was known before the level `depth` began, also when an earlier process began it."""
        known = {id_: state for id_, state in self._growth.states.items() if state.depth <= depth}
        return Ways(
            {id_: state.url for id_, state in known.items()},
            [id_ for id_, state in known.items() if self._is_addressable(state)],
            [e for e in self._growth.edges if e.target in known and known[e.source].depth < depth],
        )

    def _is_kept(self, way: Sequence[PathStep] | None) -> bool:
        """Whether the page that a way begins at could not be had in this run: what is known of it is kept."""
        load = self._loads.known(way[0].action.url) if way else None
        return load is not None and load.source == "kept"

    def _agrees(self, seen: Snapshot, step: PathStep) -> bool:
        """Whether a look on the way is what the map expects there, or near enough to go on from."""
        expected = step.expected_node_id
        if seen.id == expected or self._growth.canonical(seen.id) == expected:
            return True
        recorded = self._looks.get(expected)
        self._watch.check(recorded, seen)
        alike = self._growth.agrees(seen, expected, "load" if step.action.kind == "goto" else "in_page") or (
            seen.url == step.expected_url and similarity(seen.structure, recorded.structure) >= STAND_IN_SIMILARITY
        )
        self.account.counters["reach/stand_ins"] += int(alike)
        return alike

    async def _probe_all(self, states: Sequence[State], workers: Sequence[Worker]) -> None:
        """Find out which states their URLs reproduce."""
        urls = iter(dict.fromkeys(state.url for state in states))

        async def probe(worker: Worker) -> None:
            for url in urls:
                if self._must_stop():
                    return
                await self._loads.get(url, worker.loader)

        await _all(probe(worker) for worker in workers)

    def _take_probes(self, states: Iterable[State]) -> None:
        """Loading a state's URL may show it with other noise: take that for the state, in canonical order."""
        for state in states:
            load = self._loads.known(state.url)
            if load is not None and load.node_id:
                self._growth.take_probe(state, load)

    def _is_addressable(self, state: State) -> bool:
        load = self._loads.known(state.url)
        return load is not None and self._growth.canonical(load.node_id) == state.id

    def _load_ms(self, state: State) -> float | None:
        load = self._loads.known(state.url) if self._is_addressable(state) else None
        return load.ms if load is not None else None

    def _noise_at(self, url: str) -> AbstractSet[str]:
        """Features that are known to come and go by themselves at a URL."""
        return self._recogniser.noise_at(url)[1]

    def _at_depth(self, depth: int) -> list[State]:
        return [state for state in self._growth.states.values() if state.depth == depth]

    async def _first_state(self, worker: Worker) -> None:
        began = time.monotonic()
        load = await self._loads.get(self._start.url, worker.loader)
        if not load.node_id:
            raise BrowserFailure(f"{self._start.url} loaded, and then did not any more: {load.problem}")
        self._growth.learn(*self._start.looks)
        state = self._growth.begin(load.look)
        for banner in self._start.banners:
            self.account.counters[f"banner/{banner.choice}"] += 1
        await self._loads.alias(state.url, load)
        self.account.finish_depth(0, 1, 0, time.monotonic() - began)

    async def _see(self, seen: Snapshot, take: TakeCapture) -> str:
        """Keep a look; what is no page of this site is not captured."""
        wanted = seen.is_page and not self._start.scope.refuse_url(seen.raw_url)
        return await self._looks.see(seen, take, capture=wanted)

    # ---- the run as a whole --------------------------------------------------------------------------------------

    def _worker(self) -> Worker:
        explore = self._settings.explore
        pace = Pace(self._pacer, self._slots, item_seconds=explore.page_seconds)

        async def open_page() -> GuardedPage:
            try:
                browser = await self._browsers.renew()
                try:
                    return await self._start.open_page(browser, self._lens, self._settings, pace)
                except PlaywrightError:
                    browser = await self._browsers.renew(suspect=True)
                    return await self._start.open_page(browser, self._lens, self._settings, pace)
            except (WaygraphError, PlaywrightError) as error:
                raise NoBrowserError(str(error)) from error

        return Worker(
            open_page,
            self._start.session,
            loads=self._loads,
            counters=self.account.counters,
            see=self._see,
            agrees=self._agrees,
            pace=pace,
            advise=self.account.advise,
            item_seconds=explore.page_seconds,
            why=self._start.walls.proxy.problem,
        )

    def _must_stop(self) -> bool:
        if self._stop.is_set():
            self.account.interrupt("interrupted")
        elif self.account.seconds > self._settings.explore.max_seconds:
            self.account.interrupt("max_seconds")
        elif self._start.walls.bytes_received > self._settings.explore.max_bytes:
            self.account.interrupt("max_bytes")
        elif self._pacer.is_turning_away(self._start.site):
            self.account.interrupt("turned_away")
        return self.account.partial

    async def _unless_stopped(self, work: Awaitable[None]) -> None:
        """Await `work`, but drop what it is in the middle of when the run must stop, is out of time or turned away."""
        working = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stop.wait())
        leaving = asyncio.ensure_future(self._pacer.turns_away(self._start.site))
        left = self._settings.explore.max_seconds - self.account.seconds
        ends = {working, stopping, leaving}
        try:
            await asyncio.wait(ends, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            for each in ends:
                each.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        self._must_stop()

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

    async def _result(self) -> SiteCapture:
        for counts in (self._start.walls.counters, self._pacer.take_counters(self._start.site)):
            self.account.counters.update(counts)
        # Milliseconds a state, while other sites are explored in the same loop.
        return await asyncio.to_thread(self._assembled)

    def _assembled(self) -> SiteCapture:
        """What was found, as plain data. Nothing else works on this site any more."""
        states, look = self._growth.states, self._looks.get
        graph = build_graph(states, self._growth.edges, self._load_ms, self._settings.explore.diff, look)
        redactor = self._start.redactor
        fates = [redactor.fate(fate) for fate in self._journal.fates(self.account.fates, cap=self._cap)]
        table = self._sink.put(fates_table(asdict(fate) for fate in fates))
        noise = {state.url: self._noise_at(state.url) for state in states.values()}
        record = self._visit.record(states, self._loads.all(), noise, redactor.is_public)
        explored = SiteCapture(
            site=self._start.site,
            start_url=self._start.url,
            graph=graph,
            observations=build_observations(states, self._looks.captured, look),
            report=self.account.report(fates, table=table, record=self._sink.put(record)),
            profile={**self._settings.capture.model_dump(), "user_agent": self._start.user_agent},
            domain=self._start.scope.domain,
            refresh=self._visit.summary(self._loads.all()),
            recognition=Recognition(
                merges={merged: merge for merged, merge in self._growth.merges.items() if merge.kept in states},
                stands_for=self._skeleton.counts() if self._skeleton else {},
                evidence=evidence(states, self._recogniser, look, self._is_addressable),
            ),
        )
        return redactor.site(explored)


async def _all(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Run all at once; when one raises, cancel and await the others, then raise that very error."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
