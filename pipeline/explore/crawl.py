"""The crawl: rounds of work over the states of a site, each planned from the results of those before it.

In the order `breadth` a round is one level of the adaptive breadth-first search of WebNavigator (Alg. 1).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, islice

from waygraph.core.errors import BrowserFailure, LoggedOut
from waygraph.core.settings import ExploreSettings
from waygraph.core.urls import site_key
from waygraph.index.graph import Edge, Observation, PathStep, similarity
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.journal_records import Resumed
from waygraph.pipeline.explore.checkpoint.snapshot_store import SnapshotStore
from waygraph.pipeline.explore.engine.assemble import build_observations
from waygraph.pipeline.explore.engine.checkpointer import Checkpointer
from waygraph.pipeline.explore.engine.frontier import Frontier
from waygraph.pipeline.explore.engine.graph_builder import GraphBuilder
from waygraph.pipeline.explore.engine.limits import RunLimits
from waygraph.pipeline.explore.engine.loader import Loads
from waygraph.pipeline.explore.engine.revert import RevertRatesByLevel
from waygraph.pipeline.explore.engine.round import Round, WorkItem
from waygraph.pipeline.explore.engine.routes import Routes
from waygraph.pipeline.explore.engine.session_trials import SessionTrials
from waygraph.pipeline.explore.engine.worker import Worker
from waygraph.pipeline.explore.identity import Recogniser
from waygraph.pipeline.explore.identity.session_values import SessionValues
from waygraph.pipeline.explore.identity.siblings import SiblingBudget
from waygraph.pipeline.explore.identity.thresholds import STAND_IN_SIMILARITY
from waygraph.pipeline.explore.records.capture import ExploreProgress, RoundRow
from waygraph.pipeline.explore.records.outcome import ActionOutcome, SkipReason
from waygraph.pipeline.explore.records.state import State
from waygraph.pipeline.explore.records.stats import ExplorationStats
from waygraph.pipeline.explore.refresh.refresh import Refresh
from waygraph.pipeline.explore.session.login import LoginWatch
from waygraph.pipeline.explore.session.start import Start

#: Number of commits in a round between checkpoints. A resumed run commits at most these again.
_COMMITS_PER_CHECKPOINT = 500
#: Hosts that only links which no element shows name: their robots.txt is read, of further ones it is not.
_MAX_HIDDEN_HOSTS = 20


@dataclass(frozen=True, slots=True)
class CrawlParts:
    """The collaborators of a crawl, see the class of each.

    Attributes
    ----------
    resumed
        What an interrupted run left in the journal; None for a new run.
    """

    start: Start
    settings: ExploreSettings
    limits: RunLimits
    stats: ExplorationStats
    journal: Journal
    snapshots: SnapshotStore
    recogniser: Recogniser
    siblings: SiblingBudget
    graph: GraphBuilder
    frontier: Frontier
    loads: Loads
    session_values: SessionValues
    rates: RevertRatesByLevel
    checkpointer: Checkpointer
    refresh: Refresh
    login: LoginWatch
    resumed: Resumed | None


class Crawl:
    """Explore round by round. Outcomes are committed in canonical order, so the graph does not depend on timing.

    Parameters
    ----------
    parts
        The collaborators.
    on_progress
        Called after every work item.
    on_state
        Called with each state as soon as it is part of the graph. Exploring waits for it.

    Attributes
    ----------
    cut_at
        Index of the item of the last round at which a cap ended it; None if none did.
    """

    def __init__(
        self,
        parts: CrawlParts,
        *,
        on_progress: Callable[[ExploreProgress], None],
        on_state: Callable[[Observation], Awaitable[None]] | None,
    ) -> None:
        self._parts = parts
        self._stats, self._graph, self._snapshots, self._loads = parts.stats, parts.graph, parts.snapshots, parts.loads
        self._on_progress = on_progress
        self._on_state = on_state
        self._reported_states = 0
        self._resumed = parts.resumed
        self._hidden_hosts: set[str] = set()
        self.cut_at: int | None = None
        self._unperformed: Sequence[WorkItem] = ()
        """Items of the last round that were not performed, since the run was interrupted in it."""

    async def run(self, workers: Sequence[Worker], *, is_browser_stale: Callable[[], bool]) -> None:
        """Explore to the configured depth or the first limit, or resume where an earlier process ended.

        Parameters
        ----------
        workers
            The workers. They are closed when the browser is to be replaced between rounds.
        is_browser_stale
            Whether the browser is to be replaced.
        """
        number = 0
        if self._resumed is not None:
            await self._parts.checkpointer.load_checkpoint(self._resumed)
            number = self._resumed.round
        else:
            await self._add_start_state(workers[0])
        await self._report_states()
        while not self._has_ended():
            if is_browser_stale():
                await asyncio.gather(*(worker.close() for worker in workers))
            if not await self._run_round(number, workers):
                break
            number += 1
        await self._report_states()
        self._parts.session_values.begin_round()
        rest = self._states_not_added()
        if self._parts.start.robots is not None:
            # Leads are checked against the policies, also those of states at the depth limit.
            await self._run(self._parts.start.robots.prefetch(self._links(rest)))
        await self._run(self._probe_all(rest, workers))
        self._commit_probes(rest)
        for state in rest:
            if self._graph.depth(state.id) >= self._parts.settings.depth:
                self._parts.frontier.count_untried(state)
        if not self._stats.partial:
            known, loads = self._graph.states, self._loads.all()
            noise = self._parts.refresh.find_noise(known, loads, workers[0].loader, self.noise_at)
            await self._run(noise)

    async def _run(self, work: Awaitable[None]) -> None:
        """Await `work` within the limits. A session that has ended ends the run, with what was found until then."""
        try:
            await self._parts.limits.run(work)
        except LoggedOut as error:
            self._stats.advise(f"{error.message} {error.hint}")
            self._stats.interrupt("logged_out")

    def _has_ended(self) -> bool:
        """Return whether no further round begins. A round of an earlier process is completed whatever limit it met."""
        return self._stats.partial or (self._resumed is None and bool(self._stats.stopped_by))

    async def _add_start_state(self, worker: Worker) -> None:
        start, began = self._parts.start, time.monotonic()
        load = await self._loads.get(start.url, worker.loader)
        if not load.node_id:
            raise BrowserFailure(f"{start.url} loaded once and failed to load again: {load.problem}")
        self._graph.learn(*start.snapshots)
        state = self._graph.begin(load.snapshot_key)
        for banner in start.banners:
            self._stats.counters[f"banner/{banner.choice}"] += 1
        await self._loads.alias(state.url, load)
        self._parts.frontier.begin(self._snapshots.get(state.id))
        self._stats.finish_round(RoundRow(1, 0, time.monotonic() - began), {0: 1})

    # ---- one round ---------------------------------------------------------------------------------------------

    async def _run_round(self, number: int, workers: Sequence[Worker]) -> bool:
        """Plan a round and act on its elements. Return False if nothing is left to do."""
        begin = self._marks()
        work = await self._plan(number, workers)
        if work is None:
            return False
        routes = self._routes()
        self._loads.expect(item.candidate.action.target for item in work.items)

        async def perform(worker: Worker) -> None:
            while not self._parts.limits.are_reached() and (chunk := work.take(worker.untouched_state)):
                await self._perform_chunk(chunk, work, worker, routes, number)

        await self._run(_run_all(perform(worker) for worker in workers))
        if work.closed:
            self.cut_at = work.committed
        if self._stats.partial and not work.closed:
            # Kept with its costs, so that the statistics of a run that resumes several times are complete.
            begin = self._finish_round(work, begin)
            await self._parts.journal.save(number, work.committed, self._parts.checkpointer.checkpoint())
        if self._stats.partial:
            self._unperformed = work.stop()
        self._finish_round(work, begin)
        return True

    def _marks(self) -> RoundRow:
        """Return what was found and spent until now."""
        activations = self._stats.counters["explore/activations"]
        return RoundRow(len(self._graph.states), activations, time.monotonic(), self._stats.gain)

    def _finish_round(self, work: Round, begin: RoundRow) -> RoundRow:
        """Record what was found and spent since `begin`. Return what was until now."""
        end = self._marks()
        row = RoundRow(
            states=end.states - begin.states,
            activations=end.activations - begin.activations,
            seconds=round(end.seconds - begin.seconds, 3),
            gain=round(end.gain - begin.gain, 4),
        )
        self._stats.finish_round(row, Counter(self._graph.depth(item.state_id) + 1 for item in work.items))
        return end

    async def _plan(self, number: int, workers: Sequence[Worker]) -> Round | None:
        """Plan a round and store the plan, or return what an earlier process left of it. None if nothing is left."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            return self._resumed_round(resumed)
        frontier, depth = self._parts.frontier, self._parts.settings.depth
        new = [state for state in self._states_not_added() if self._graph.depth(state.id) < depth]
        await self._run(self._probe_all(new, workers))
        if self._parts.limits.are_reached():
            return None
        self._commit_probes(new)
        await self._run(self._try_sessions(new, workers[0]))
        if self._parts.limits.are_reached():
            return None
        self._parts.rates.begin_round()
        if self._parts.start.robots is not None:
            await self._run(self._parts.start.robots.prefetch(self._links(new)))
            if self._parts.limits.are_reached():
                return None
        for state in new:
            frontier.add(state)
        self._parts.siblings.keep(frontier.states_with_pending())
        items = frontier.next_round(len(self._graph.states))
        if not items:
            return None
        self._graph.begin_round()
        self._parts.session_values.begin_round()
        planned = [(item.state_id, item.candidate) for item in items]
        await self._parts.journal.begin_round(number, planned, self._parts.checkpointer.checkpoint())
        return Round(items, self._commit)

    def _resumed_round(self, resumed: Resumed) -> Round:
        items = [WorkItem(i, state_id, candidate) for i, (state_id, candidate) in enumerate(resumed.items)]
        work = Round(
            items,
            self._commit,
            committed=resumed.committed,
            done=resumed.outcomes.keys(),
            closed=self._stats.stopped_by == "max_states",
        )
        for index, outcome in resumed.outcomes.items():
            work.done(items[index], outcome)
        self._stats.counters["explore/resumed_items"] += len(resumed.outcomes)
        return work

    async def _perform_chunk(
        self, chunk: Sequence[WorkItem], work: Round, worker: Worker, routes: Routes, number: int
    ) -> None:
        """Perform the items of a chunk in order, and store and hand in each outcome."""
        worker.begin_chunk(self._parts.rates.known)
        state_id = chunk[0].state_id
        route = routes.to(state_id)
        for item in chunk:
            if work.closed or self._parts.limits.are_reached():
                return
            outcome = await self._perform(item, worker, route, self._graph.states[state_id].snapshot_key)
            await self._parts.journal.record(number, item.index, outcome)
            committed = work.committed
            work.done(item, outcome)
            if work.committed // _COMMITS_PER_CHECKPOINT != committed // _COMMITS_PER_CHECKPOINT:
                await self._parts.journal.save(number, work.committed, self._parts.checkpointer.checkpoint())
            self._report_progress(self._graph.depth(state_id), work.pending + self._parts.frontier.pending)
            await self._report_states()

    async def _perform(
        self, item: WorkItem, worker: Worker, route: Sequence[PathStep] | None, snapshot_key: str
    ) -> ActionOutcome:
        refusal = self._parts.frontier.refuse_now(item)
        if refusal is not None:
            return ActionOutcome(skipped=SkipReason(refusal.reason, refusal.detail))
        return await self._parts.refresh.perform(
            worker,
            item,
            route,
            snapshot_key=snapshot_key,
            load_url=self._loads.get,
            is_reachable=not self._starts_at_kept_page(route),
        )

    def _commit(self, item: WorkItem, outcome: ActionOutcome) -> bool:
        """Commit an outcome to the graph. Return False if a cap ends the run here."""
        # Commits are in canonical order, so what was learned while the item was in progress is applied here.
        if refusal := self._parts.frontier.refuse_at_last(item):
            outcome = ActionOutcome(skipped=SkipReason(refusal.reason, refusal.detail))
        elif outcome.skipped.reason and (page := self._parts.recogniser.loaded_state(item.candidate.action.target)):
            # A worker skipped the item, and another item visited the page before this commit.
            outcome = ActionOutcome(page, loaded=True)
        self._parts.rates.add(outcome.undone)
        known = len(self._graph.states)
        is_below_cap = self._graph.commit(item, outcome)
        found = next(reversed(self._graph.states)) if len(self._graph.states) > known else None
        self._parts.frontier.learn(item, self._snapshots.get(found) if found else None)
        return is_below_cap

    def _links(self, states: Iterable[State]) -> Iterator[str]:
        """Yield the link targets of states within the scope, also of links that no element shows."""
        for state in states:
            seen = self._snapshots.get(state.id)
            hidden = (link.url for link in seen.links if self._is_of_few_hosts(link.url))
            for url in chain((each.action.target for each in seen.candidates), hidden):
                if self._parts.start.scope.refuse_url(url) is None:
                    yield url

    def _is_of_few_hosts(self, url: str) -> bool:
        """Return whether a link that no element shows is of the first hosts that such links name."""
        host = site_key(url)
        if len(self._hidden_hosts) < _MAX_HIDDEN_HOSTS:
            self._hidden_hosts.add(host)
        return host in self._hidden_hosts

    def _states_not_added(self) -> list[State]:
        """Return the states whose elements are not part of the frontier, since they are new or too deep."""
        return [state for state in self._graph.states.values() if not self._parts.frontier.is_added(state.id)]

    # ---- reaching states -----------------------------------------------------------------------------------------

    def _routes(self) -> Routes:
        """Return the routes over what was known before the round began, in this process or an earlier one."""
        known, edges = self._graph.before_round()
        return self._routes_over(known, edges)

    def _routes_over(self, known: Mapping[str, State], edges: Iterable[Edge]) -> Routes:
        walked = (edge for number, edge in enumerate(edges) if self._graph.keeps_session(number))
        return Routes(known, [id_ for id_, state in known.items() if self.is_addressable(state)], walked)

    async def _try_sessions(self, states: Iterable[State], worker: Worker) -> None:
        """Find out whether what arriving at states left in the browser decides what links lead to."""
        trials = SessionTrials(self._loads, self._snapshots.read, self._parts.session_values, self._stats.counters)
        self._parts.session_values.begin_round()
        for state in states:
            if self._parts.limits.are_reached():
                return
            if not trials.are_needed(state.left):
                continue
            routes = self._routes_over(self._graph.states, self._graph.edges)
            seen = self._snapshots.get(state.id)
            links = [each.action.target for each in seen.candidates if self._is_followed(each, seen)]
            if not self.is_addressable(state):
                links.insert(0, state.load_url)
            start = self._snapshots.get(next(iter(self._graph.states)))
            shared = {start.url, *(each.action.target for each in start.candidates)}
            await trials.run(worker, state, seen=seen, route=routes.to(state.id), links=links, shared=shared)
            self._parts.session_values.begin_round()

    def _is_followed(self, candidate: Candidate, seen: Snapshot) -> bool:
        """Return whether an element is a link that may be followed."""
        action = candidate.action
        is_link = action.kind == "click" and action.target.startswith(("http:", "https:"))
        return is_link and self._parts.frontier.refuse(candidate, seen) is None

    def _starts_at_kept_page(self, route: Sequence[PathStep] | None) -> bool:
        """Return whether the first page of a route met an outage in this run, so that its earlier answer is kept."""
        load = self._loads.known(route[0].action.url) if route else None
        return load is not None and load.source == "kept"

    def agrees(self, snapshot: Snapshot, step: PathStep) -> bool:
        """Return whether a snapshot on a route shows the expected state, or a state similar enough to continue from."""
        expected = step.expected_node_id
        if snapshot.id == expected or self._graph.canonical(snapshot.id) == expected:
            return True
        recorded = self._snapshots.get(expected)
        if self._parts.login.check(recorded, snapshot):
            return False
        similar = self._graph.agrees(snapshot, expected, "load" if step.action.kind == "goto" else "in_page") or (
            snapshot.url == step.expected_url
            and similarity(snapshot.structure, recorded.structure) >= STAND_IN_SIMILARITY
        )
        self._stats.counters["reach/stand_ins"] += int(similar)
        return similar

    async def _probe_all(self, states: Sequence[State], workers: Sequence[Worker]) -> None:
        """Load the URLs of states, to find out which states they reproduce."""
        urls = iter(dict.fromkeys(state.load_url for state in states))

        async def probe(worker: Worker) -> None:
            for url in urls:
                if self._parts.limits.are_reached():
                    return
                await self._loads.get(url, worker.loader)

        await _run_all(probe(worker) for worker in workers)

    def _commit_probes(self, states: Iterable[State]) -> None:
        """Merge probed snapshots that differ from their state in noise only, in canonical order."""
        for state in states:
            load = self._loads.known(state.url)
            if load is not None and load.node_id:
                self._graph.take_probe(state, load)

    def is_addressable(self, state: State) -> bool:
        """Return whether loading the URL of a state reproduces it, with the session that its actions need."""
        load = self._loads.known(state.url)
        session_of = self._parts.session_values.session_in_round
        return (
            load is not None
            and self._graph.canonical(load.node_id) == state.id
            and session_of(load.left) == session_of(state.left)
        )

    def load_ms(self, state: State) -> float | None:
        """Return the loading time of an addressable state in milliseconds, None for other states."""
        load = self._loads.known(state.url) if self.is_addressable(state) else None
        return load.ms if load is not None else None

    def known_page(self, candidate: Candidate, snapshot: Snapshot) -> str | None:
        """Return the addressable state that a link of a page leads to, by its URL; None if it may not be followed."""
        action = candidate.action
        if action.kind != "click" or not action.target.startswith(("http:", "https:")):
            return None
        node_id = self._parts.recogniser.loaded_state(action.target)
        state = self._graph.states.get(node_id) if node_id is not None else None
        if state is None or not self.is_addressable(state) or self._parts.frontier.refuse(candidate, snapshot):
            return None
        return node_id

    def expected_gain(self, count: int) -> float:
        """Return the expected gain of that many further items together: of all that a run that resumes would plan."""
        depth = self._parts.settings.depth
        not_added = [state for state in self._states_not_added() if self._graph.depth(state.id) < depth]
        return self._parts.frontier.expected_gain(count, self._unperformed, not_added)

    def noise_at(self, url: str) -> AbstractSet[str]:
        """Return features that are known to come and go at a URL."""
        return self._parts.recogniser.noise_at(url)[1]

    # ---- reporting -----------------------------------------------------------------------------------------------

    async def _report_states(self) -> None:
        """Call `on_state` with the states that were committed since the last call."""
        while self._on_state is not None and self._reported_states < len(self._graph.states):
            # Counted before the await, during which other workers run this as well.
            node_id = next(islice(self._graph.states, self._reported_states, None))
            self._reported_states += 1
            state = {node_id: self._graph.states[node_id]}
            observed = build_observations(state, self._snapshots.captured, self._snapshots.get)
            await self._on_state(self._parts.start.redactor.observation(observed[node_id]))

    def _report_progress(self, depth: int, pending: int) -> None:
        self._on_progress(
            ExploreProgress(
                site=self._parts.start.site,
                depth=depth + 1,
                states=len(self._graph.states),
                edges=len(self._graph.edges),
                activations=self._stats.counters["explore/activations"],
                pending=pending,
                skipped=self._stats.skipped,
                failed=self._stats.failed,
                warnings=tuple(map(self._parts.start.redactor.message, self._parts.start.warnings)),
            )
        )


async def _run_all(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Run coroutines concurrently. If one raises, cancel and await the others, then raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
