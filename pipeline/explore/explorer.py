"""The explorer of one site: builds the parts of a crawl from settings, runs it, and assembles the result."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial

from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import BrowserFailure, WaygraphError
from waygraph.core.settings import Settings
from waygraph.core.urls import normalize_url
from waygraph.index.graph import Lead, Observation, Recognition
from waygraph.index.store.element_outcomes import write_element_outcomes
from waygraph.pipeline.browser.guard import STAND_IN, advise_stand_ins
from waygraph.pipeline.browser.page.snapshot import Snapshot, SnapshotOptions
from waygraph.pipeline.browser.process.pool import BrowserLease
from waygraph.pipeline.browser.session import GuardedPage, TakeCapture
from waygraph.pipeline.browser.storage.session_file import SessionState
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.snapshot_store import SnapshotStore
from waygraph.pipeline.explore.crawl import Crawl, CrawlParts
from waygraph.pipeline.explore.engine.assemble import build_graph, build_observations
from waygraph.pipeline.explore.engine.checkpointer import Checkpointer
from waygraph.pipeline.explore.engine.context import CrawlContext
from waygraph.pipeline.explore.engine.dead_links import DeadLinks
from waygraph.pipeline.explore.engine.frontier import Frontier
from waygraph.pipeline.explore.engine.graph_builder import GraphBuilder, GraphRules
from waygraph.pipeline.explore.engine.leads import LeadSources, collect_leads, tried_targets
from waygraph.pipeline.explore.engine.limits import RunLimits
from waygraph.pipeline.explore.engine.loader import Loads
from waygraph.pipeline.explore.engine.order import BreadthOrder, NoveltyOrder
from waygraph.pipeline.explore.engine.revert import RevertRatesByLevel
from waygraph.pipeline.explore.engine.site_tools import site_tools
from waygraph.pipeline.explore.engine.worker import Worker
from waygraph.pipeline.explore.identity import Recogniser, Skeleton
from waygraph.pipeline.explore.identity.drawn_pages import may_be_drawn
from waygraph.pipeline.explore.identity.evidence import build_evidence
from waygraph.pipeline.explore.identity.session_values import SessionValues
from waygraph.pipeline.explore.identity.siblings import SiblingBudget
from waygraph.pipeline.explore.identity.traps import TrapDetector
from waygraph.pipeline.explore.politeness.pace import Pace
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots
from waygraph.pipeline.explore.records.capture import NEXT_ITEMS, SENDS_STOPPED, BlobSink, ExploreProgress, SiteCapture
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome, with_details
from waygraph.pipeline.explore.records.listing import SiteListing
from waygraph.pipeline.explore.records.stats import ExplorationStats
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.refresh import Refresh
from waygraph.pipeline.explore.session.content import check_content
from waygraph.pipeline.explore.session.login import LoginWatch
from waygraph.pipeline.explore.session.start import Start

#: Groups of pages that advice on leads names.
_SHOWN_GROUPS = 5


class NoBrowserError(Exception):
    """No page can be opened any more. This ends the run; it is not a failure of a work item."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What an exploration uses and shares with others in the same event loop.

    Attributes
    ----------
    browsers
        The current browser, and how to replace a lost one.
    pacer
        Turns at hosts.
    slots
        Slots for busy pages.
    journal
        What an earlier process found, and where this one records.
    blobs
        Where screenshots and DOMs go.
    counters
        Counters, see docs/counters.md.
    """

    browsers: BrowserLease
    pacer: Pacer
    slots: Slots
    journal: Journal
    blobs: BlobSink
    counters: Counter[str]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """How a caller follows and ends an exploration.

    Attributes
    ----------
    on_progress
        Called after every work item.
    on_state
        Called with each state as soon as it is part of the map. Exploring waits for it.
    stop
        Set it to end the run early. The result is partial then.
    """

    on_progress: Callable[[ExploreProgress], None] = lambda _: None
    on_state: Callable[[Observation], Awaitable[None]] | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)


class Explorer:
    """Explore one site in one browser at a time. Create it and `run` it once.

    Parameters
    ----------
    start
        The prepared start page: session, scope, policies.
    settings
        Settings of the exploration.
    resources
        Browsers, pacer, slots, journal, blobs, counters.
    callbacks
        Progress and interruption.
    prior
        An earlier exploration of the site, for a refresh.
    listing
        What the site lists of itself; None: nothing.
    """

    def __init__(
        self,
        start: Start,
        settings: Settings,
        resources: Resources,
        *,
        callbacks: Callbacks,
        prior: PriorExploration | None = None,
        listing: SiteListing | None = None,
    ) -> None:
        explore = settings.explore
        prior = prior or PriorExploration.empty(explore.url_policy)
        journal, counters = resources.journal, resources.counters
        self._start = start
        self._settings = settings
        self._resources = resources
        self._listing = listing or SiteListing()
        self._snapshot_options = SnapshotOptions.from_settings(settings.browser, explore, start.scope.frames)
        self._reached: set[str] = set()
        resumed = journal.last()
        visits = start.boundary.request_policy.visits
        stats = ExplorationStats(
            start_url=start.url, counters=counters, sent_by_visits=visits.sent, over_budget=visits.over_budget
        )
        captured = {**prior.captures(), **(resumed.captures if resumed else {})}
        snapshots = SnapshotStore(journal, resources.blobs, counters, captured, start.redactor)
        refresh = Refresh(prior, snapshots=snapshots, journal=journal, counters=counters)
        self._skeleton = Skeleton(explore.url_policy, snapshots.get) if explore.mode == "skeleton" else None
        recogniser = Recogniser(explore.identity, explore.url_policy, snapshots.get, skeleton=self._skeleton)
        traps = TrapDetector(explore.trap_budget, recogniser.url_key, skeleton=self._skeleton)
        siblings = SiblingBudget(explore.alike_budget)
        session_values = SessionValues()
        rules = GraphRules(
            start.scope,
            recogniser,
            traps,
            siblings,
            max_states=explore.max_states,
            dead_links=DeadLinks(recogniser.link_key),
            skeleton=self._skeleton,
            url_policy=explore.url_policy,
            session_values=session_values,
        )
        graph = GraphBuilder(rules, stats, snapshots)
        frontier = Frontier(
            start.policies,
            stats,
            snapshots,
            rules=rules,
            settings=explore,
            made_by=graph.made_by,
            order=NoveltyOrder(recogniser.link_key, prior.wanted) if explore.order == "novelty" else BreadthOrder(),
        )
        loads = Loads(explore.url_policy, journal.record_load, refresh.load)
        rates = RevertRatesByLevel()
        limits = RunLimits(
            start.site, explore, stats, pacer=resources.pacer, boundary=start.boundary, stop=callbacks.stop
        )
        self._parts = CrawlParts(
            start=start,
            settings=explore,
            limits=limits,
            stats=stats,
            journal=journal,
            snapshots=snapshots,
            recogniser=recogniser,
            siblings=siblings,
            graph=graph,
            frontier=frontier,
            loads=loads,
            session_values=session_values,
            rates=rates,
            checkpointer=Checkpointer(graph, frontier, stats, loads=loads, rates=rates, robots=start.robots),
            refresh=refresh,
            login=LoginWatch(start.site, start.logged_in, start.snapshots[1]),
            resumed=resumed,
        )
        self._crawl = Crawl(self._parts, on_progress=callbacks.on_progress, on_state=callbacks.on_state)

    async def run(self) -> SiteCapture:
        """Explore to the configured depth or the first limit, or resume where an earlier process ended.

        Returns
        -------
        SiteCapture
            The map, partial if a limit of time or bytes, an interruption or the host ended the run.

        Raises
        ------
        BrowserFailure
            If the browser is lost for good.
        ContentStopped
            If the guard kept the application from its content.
        """
        workers = [self._worker() for _ in range(self._settings.explore.workers)]
        browsers = self._resources.browsers
        try:
            await self._crawl.run(workers, is_browser_stale=lambda: browsers.is_stale)
        except NoBrowserError as error:
            raise BrowserFailure(f"The browser was lost while exploring {self._start.site}: {error}") from error
        finally:
            await asyncio.gather(*(worker.close() for worker in workers))
        self._check_content()
        for warning in filter(None, (*self._start.warnings, self._listing.advice)):
            self._parts.stats.advise(warning)
        used = [name for name in self._start.boundary.counters if name.startswith(STAND_IN)]
        if used:
            self._parts.stats.advise(advise_stand_ins(self._start.site, used))
        for counts in (
            self._listing.counters,
            self._start.boundary.counters,
            self._resources.pacer.take_counters(self._start.site),
        ):
            self._parts.stats.counters.update(counts)
        self._parts.stats.counters["egress/bytes"] += self._start.boundary.bytes_received
        # In a thread, since it takes milliseconds per state while other sites are explored in this loop.
        return await asyncio.to_thread(self._result)

    def _check_content(self) -> None:
        """Record, or raise, that the guard kept the application from its content."""
        stats, start = self._parts.stats, self._start
        if stats.partial:
            return
        loads = self._parts.loads.all().values()
        stopped = [*start.stopped, *(request for load in loads for request in load.blocked)]
        advice = check_content(start.site, start.snapshots[1], stopped, states=len(self._parts.graph.states))
        if advice is not None:
            stats.advise(advice)
            stats.interrupt(SENDS_STOPPED)

    def _worker(self) -> Worker:
        explore, start = self._settings.explore, self._start
        pace = Pace(self._resources.pacer, self._resources.slots, item_seconds=explore.page_seconds)

        async def open_page(session: SessionState | None) -> GuardedPage:
            try:
                browser = await self._resources.browsers.renew()
                try:
                    return await start.open_page(browser, self._snapshot_options, self._settings, pace, session)
                except PlaywrightError:
                    browser = await self._resources.browsers.renew(suspect=True)
                    return await start.open_page(browser, self._snapshot_options, self._settings, pace, session)
            except (WaygraphError, PlaywrightError) as error:
                raise NoBrowserError(str(error)) from error

        context = CrawlContext(
            open_page=open_page,
            session=start.session,
            counters=self._parts.stats.counters,
            save_snapshot=self._save_snapshot,
            save_as_shown=partial(self._save_snapshot, as_shown=True),
            url_policy=self._settings.explore.url_policy,
            advise=self._parts.stats.advise,
            connection_problem=start.boundary.proxy.problem,
            is_pressed_behind_guard=start.site_policies.hazards.is_pressed,
            is_left_alone=lambda element, page: self._parts.frontier.refuse(element, page) is not None,
            login=self._parts.login,
            reached=self._reached,
            values=self._parts.session_values,
        )
        return Worker(
            context, pace, loads=self._parts.loads, agrees=self._crawl.agrees, item_seconds=explore.page_seconds
        )

    async def _save_snapshot(self, snapshot: Snapshot, take: TakeCapture, *, as_shown: bool = False) -> str:
        """Store a snapshot. Only pages of the site are captured."""
        wanted = (snapshot.is_page or may_be_drawn(snapshot)) and not self._start.scope.refuse_url(snapshot.raw_url)
        return await self._parts.snapshots.save(snapshot, take, capture=wanted, as_shown=as_shown)

    def _result(self) -> SiteCapture:
        """Assemble the result as plain data."""
        parts, crawl, blobs = self._parts, self._crawl, self._resources.blobs
        stats, states, snapshot = parts.stats, parts.graph.states, parts.snapshots.get
        redactor, loads = self._start.redactor, parts.loads.all()
        graph = build_graph(
            states,
            parts.graph.edges,
            self._settings.explore.diff,
            snapshot,
            depth=parts.graph.depth,
            load_ms=crawl.load_ms,
            known_page=crawl.known_page,
            session_of=parts.graph.session_of,
        )
        found = [*parts.journal.fates(stats.fates, cap=crawl.cut_at), *parts.frontier.unplanned()]
        known = list(with_details(found, parts.graph.edges))
        leads = self._leads(known)
        tools = site_tools(states, snapshot, stats.counters)
        elements = [redactor.element_outcome(each) for each in known]
        noise = {state.url: crawl.noise_at(state.url) for state in states.values()}
        record = parts.refresh.to_record(states, loads, noise, redactor.is_public, at=self._listing.at)
        capture = SiteCapture(
            site=self._start.site,
            start_url=self._start.url,
            graph=graph,
            observations=build_observations(states, parts.snapshots.captured, snapshot),
            report=stats.report(
                elements,
                Counter(map(parts.graph.depth, states)),
                table=blobs.put(write_element_outcomes(asdict(each) for each in elements)),
                record=blobs.put(record),
                expected_gain=crawl.expected_gain(NEXT_ITEMS),
            ),
            profile={**self._settings.capture.model_dump(), "user_agent": self._start.user_agent},
            domain=self._start.scope.domain,
            refresh=parts.refresh.summary(loads),
            recognition=Recognition(
                merges={merged: merge for merged, merge in parts.graph.merges.items() if merge.kept in states},
                stands_for=self._skeleton.counts() if self._skeleton else {},
                evidence=build_evidence(states, parts.recogniser, snapshot, crawl.is_addressable),
            ),
            leads=leads,
            tools=tools,
        )
        return redactor.site(capture)

    def _leads(self, outcomes: Iterable[ElementOutcome]) -> dict[str, Lead]:
        parts, explore = self._parts, self._settings.explore
        states = parts.graph.states
        sources = LeadSources(
            states=states,
            snapshot_of=parts.snapshots.get,
            depth=parts.graph.depth,
            normalize=lambda url: normalize_url(url, explore.url_policy),
            url_key=parts.recogniser.link_key,
            is_in_scope=lambda url: self._start.scope.refuse_url(url) is None,
            refuse=parts.frontier.refuse,
            listed=self._listing.pages,
            refuse_url=self._start.refuse_url,
            tried=tried_targets(outcomes, parts.graph.edges, states, lambda url: parts.loads.known(url) is not None),
        )
        found = collect_leads(sources, explore.lead_bytes, parts.stats.counters)
        if found.left_out:
            most = ", ".join(f"{count:,} in {group}" for group, count in found.left_out.most_common(_SHOWN_GROUPS))
            parts.stats.advise(
                f"{found.left_out.total():,} pages that links lead to are not in the map, since its leads would take "
                f"more than explore.lead_bytes ({explore.lead_bytes:,}): {most}"
            )
        return dict(found.leads)
