"""Coordinator of a bulk run: a fair queue of sites, explorers that take them, and a publisher that makes maps of them.

An explorer is a process with one browser that explores many sites at once, so one per CPU suffices. The coordinator
holds the queue, counters and references. On Ray, captures and vectors stay in its object store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from waygraph.core.errors import WaygraphError
from waygraph.core.settings import Settings
from waygraph.pipeline.explore.records.capture import ExploreProgress
from waygraph.pipeline.jobs.actors.protocol import Actor, ActorError, ActorSystem, ObjectRef
from waygraph.pipeline.jobs.call_errors import resolve_actor_error, to_waygraph_error
from waygraph.pipeline.jobs.events import SitePhase
from waygraph.pipeline.jobs.exploring.explorer_fleet import ExplorerFleet
from waygraph.pipeline.jobs.exploring.turn import Turn
from waygraph.pipeline.jobs.exploring.worker_slots import ExplorerSlot
from waygraph.pipeline.jobs.failures import WorkerLost, decide_site_retry, is_worker_crash
from waygraph.pipeline.jobs.metrics import RunMetrics
from waygraph.pipeline.jobs.report.outcomes import TURN_ENDED, Publication, StoppedBy
from waygraph.pipeline.jobs.run.fair_queue import FairQueue
from waygraph.pipeline.jobs.run.publisher import PublisherClient, save_worker_logs
from waygraph.pipeline.jobs.run.run_state import RunState
from waygraph.pipeline.jobs.run.shutdown import ShutdownSteps, run_until_stopped
from waygraph.pipeline.jobs.run.site_run import SiteRun
from waygraph.pipeline.jobs.run.turns import EarlierTurns, next_turn, takes_turns
from waygraph.pipeline.jobs.sites.site_settings import settings_for_site
from waygraph.pipeline.jobs.work_files import journal_path, remove_journal

#: Number of explored sites that may wait for the publisher, beyond one per worker slot.
_WAITING_CAPTURES = 2
#: Time for explorations and publications in progress to end when the run stops.
_STOP_SECONDS = 5.0
#: Time for an explorer to remove a journal.
_REMOVE_JOURNAL_SECONDS = 30.0


class Coordinator:
    """One bulk run.

    Parameters
    ----------
    run_state
        State of the run.
    settings
        Settings of the run.
    actors
        Where explorers, publisher and encoders run.
    explore
        `module:function` that explores a site.
    """

    def __init__(self, run_state: RunState, settings: Settings, actors: ActorSystem, explore: str) -> None:
        self._run_state = run_state
        self._settings = settings
        self._actors = actors
        self._publisher = PublisherClient(run_state, settings, actors)
        self._metrics: RunMetrics | None = None
        if actors.exports_metrics:
            self._metrics = RunMetrics(run_state.work, (site.status for site in run_state.sites))
            run_state.subscribe(self._metrics)
        unfinished = run_state.unfinished
        self._fleet = ExplorerFleet(
            settings,
            actors,
            explore,
            sites=len(unfinished),
            avoid_gpus=self._publisher.uses_gpus,
            on_progress=self._record_progress,
            on_notice=run_state.notify,
        )
        self._captures = asyncio.Semaphore(self._fleet.size.sites_at_once + _WAITING_CAPTURES)
        self._takes_turns = takes_turns(settings.jobs, work=run_state.work, sites=len(unfinished))
        self._queue: FairQueue[SiteRun] = FairQueue([], lambda site: site.domain)
        for site in unfinished:
            self._wait_for_turn(site)
        self._sites = {site.task.start_url: site for site in run_state.sites}
        self._exploring: set[SiteRun] = set()
        self._publishing: set[asyncio.Task[None]] = set()
        self._has_explorer = asyncio.Event()
        self._lost_workers = False
        self._phase: Literal["work", "stop"] = "work"
        self._phase_started = time.monotonic()

    async def execute(self, stop: asyncio.Event) -> None:
        """Map sites until all are done or `stop` is set."""
        self._run_state.record_phase("start")
        self._phase_started = time.monotonic()
        work = asyncio.create_task(self._work())
        steps = ShutdownSteps(
            stop=self._stop,
            abandon=self._abandon_explorations,
            cancel=self._abandon_publications,
            stop_seconds=_STOP_SECONDS,
            grace_seconds=self._settings.jobs.publish_grace_seconds,
        )
        await run_until_stopped(work, interrupted=stop, budget=self._run_state.budget, steps=steps)
        await self._publisher.report()
        if not self._actors.ends_with_coordinator:
            self._fleet.kill()
            self._publisher.actor.kill()
        self._run_state.record_phase(self._phase, since=self._phase_started)
        if self._lost_workers or self._publisher.lost_workers:
            save_worker_logs(self._run_state, self._actors)
        if not work.cancelled():
            work.result()  # raises errors that are not outcomes of sites, such as a closed display

    async def _work(self) -> None:
        pending: set[asyncio.Task[Any]] = {
            asyncio.create_task(self._explore_sites()) for _ in range(self._fleet.size.sites_at_once)
        }
        pending |= {asyncio.create_task(self._load_encoder()), asyncio.create_task(self._run_state.completed.wait())}
        try:
            while not self._run_state.completed.is_set():
                finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    task.result()
        except Exception as error:  # noqa: BLE001 - becomes the outcome of every site that is not finished
            self._run_state.fail_unfinished(to_waygraph_error(error, "The run"))
        finally:
            left = [*pending, *self._publishing]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._fleet.close()

    async def _load_encoder(self) -> None:
        """Load the encoder while the first site is explored. Before, it would slow the start of the explorer down."""
        await self._has_explorer.wait()
        await self._publisher.load()

    def _record_progress(self, progress: Mapping[str, ExploreProgress]) -> None:
        for start_url, each in progress.items():
            self._run_state.set_progress(self._sites[start_url], each)
        self._count_states()

    def _count_states(self) -> None:
        if self._metrics is not None:
            self._metrics.set_explored_states(self._run_state.budget.states)

    # -- early end ---------------------------------------------------------------------------------------------------

    def _stop(self, reason: StoppedBy) -> None:
        if self._phase == "work":
            self._run_state.record_phase(self._phase, since=self._phase_started)
            self._phase, self._phase_started = "stop", time.monotonic()
        self._run_state.stopped_by = reason
        limit = "" if reason == "signal" else f" ({reason} is reached)"
        self._run_state.notify(f"Stopping{limit}. Sites that are published stay published.")
        self._fleet.stop()
        for site in self._queue.drain():
            self._run_state.finish(site, "interrupted")

    def _abandon_explorations(self) -> None:
        for site in self._exploring:
            self._run_state.finish(site, "interrupted")

    def _abandon_publications(self) -> None:
        # Their explorations are in journals and their vectors in the spool: the next invocation publishes them.
        left = len(self._publishing)
        self._run_state.notify(f"{left} explored sites are left unpublished. The same command publishes them.")

    # -- exploring ---------------------------------------------------------------------------------------------------

    async def _explore_sites(self) -> None:
        """Explore one site after the other, until cancelled."""
        while True:
            await self._captures.acquire()
            site = await self._queue.take()
            self._exploring.add(site)
            try:
                is_explored = await self._explore_site(site)
            finally:
                self._exploring.discard(site)
                self._queue.release(site)
            if not is_explored:
                self._captures.release()

    async def _explore_site(self, site: SiteRun) -> bool:
        """Explore a site and pass it to the publisher. Return whether there was something to pass."""
        while True:
            async with self._fleet.slot(alone=site.alone) as slot:
                isolated = site.alone or self._fleet.size.sites_each == 1
                await asyncio.wrap_future(self._run_state.begin_exploring(site))
                failure = await self._attempt(site, slot)
            if failure is None:
                return True
            if not self._retries_now(site, failure, isolated=isolated):
                return False

    async def _attempt(self, site: SiteRun, slot: ExplorerSlot) -> WaygraphError | None:
        """Explore a site once, and begin to publish it. Return why that failed, or None."""
        actor = None
        try:
            actor = await self._fleet.actor(slot)
            self._has_explorer.set()
            capture = await self._explore(site, actor)
        except Exception as error:  # noqa: BLE001 - becomes the outcome of the site
            cause = error if actor is None else await resolve_actor_error(error, partial(actor.call, "ready"))
            failure = to_waygraph_error(cause, f"Exploring {site.key}")
            if isinstance(failure, WorkerLost):
                self._lost_workers = True
                self._fleet.discard(slot, actor)
            if is_worker_crash(failure):
                site.alone = True
            return failure
        self._expect_turn(site)
        publishing = asyncio.create_task(self._publish(site, capture, actor))
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)
        return None

    async def _explore(self, site: SiteRun, actor: Actor) -> ObjectRef:
        """Run one exploration and return the reference of its capture."""
        statistics, capture = await self._fleet.explore(
            actor,
            site.task.start_url,
            self._publisher.actor,
            max_seconds=settings_for_site(self._settings, site.key).explore.max_seconds,
            turn=self._next_turn(site),
        )
        self._run_state.set_exploration(site, statistics)
        self._count_states()
        return capture

    def _next_turn(self, site: SiteRun) -> Turn | None:
        """Return the turn of a site that is explored next. None if sites do not take turns."""
        if not self._takes_turns:
            return None
        return next_turn(self._settings.jobs, site.turns, is_last_site=self._run_state.has_one_site_left)

    def _wait_for_turn(self, site: SiteRun) -> None:
        """Put a site into the queue: after all sites without a turn if it had one, by its expected gain."""
        if self._takes_turns and site.turns is not None:
            self._queue.put_back(site, site.turns.rank(site.position))
        else:
            self._queue.put(site)

    def _expect_turn(self, site: SiteRun) -> None:
        """Keep the next turn for a site that is published meanwhile, if states are scarce and not time."""
        exploration = site.exploration
        if self._settings.jobs.max_total_states and exploration is not None and exploration.stopped_by == TURN_ENDED:
            self._queue.expect(site, EarlierTurns.of(exploration).rank(site.position))

    def _retries_now(self, site: SiteRun, failure: WaygraphError, *, isolated: bool) -> bool:
        """Carry out the decision about a failed attempt. Return whether to retry immediately.

        Parameters
        ----------
        site
            The site.
        failure
            Why its attempt failed.
        isolated
            See `decide_site_retry`.

        Returns
        -------
        bool
            False if the site has its outcome or waits in the queue.
        """
        if self._run_state.is_stopping:
            self._run_state.finish(site, "interrupted")
            return False
        decision = decide_site_retry(
            failure, site.failures, isolated=isolated, retries=self._settings.jobs.site_retries
        )
        site.failures = decision.failures
        if decision.retry == "never":
            self._run_state.finish(site, "failed", error=failure, is_final=decision.is_final)
            return False
        self._run_state.record_failed_attempt(site)
        if self._metrics is not None:
            self._metrics.count_retry(failure)
        if decision.retry == "now":
            self._run_state.notify(f"{site.key}: trying again. {failure.message}", site=site.key)
            return True
        pause = f"in {decision.pause_seconds:.0f} s at the earliest"
        self._run_state.notify(f"{site.key}: trying again {pause}. {failure.message}", site=site.key)
        self._queue.put(site, pause_seconds=decision.pause_seconds)
        return False

    # -- encoding and publishing -------------------------------------------------------------------------------------

    async def _publish(self, site: SiteRun, capture: ObjectRef, explorer: Actor) -> None:
        """Have a capture encoded and published. Errors become the outcome of the site and are never raised."""
        try:
            if self._run_state.is_stopping and not self._publishes_part(site):
                self._run_state.finish(site, "interrupted")
                return
            self._run_state.emit(SitePhase(site.key, "encoding", site.attempts))
            publication: Publication | None = await self._publisher.call(site.key, "publish", capture)
            if site.exploration is not None and site.exploration.stopped_by == TURN_ENDED:
                self._end_turn(site, publication)
                return
            # The next run resumes a partial exploration.
            if site.exploration is not None and not site.exploration.partial:
                await self._remove_journal(site, explorer)
            self._run_state.finish(site, "published", publication=publication)
        except Exception as error:  # noqa: BLE001 - becomes the outcome of the site
            failure = to_waygraph_error(error, f"Publishing {site.key}")
            # The publisher may have died because of another capture.
            if self._retries_now(site, failure, isolated=len(self._publishing) == 1):
                self._queue.put(site)
        finally:
            self._queue.forget(site)
            self._captures.release()

    def _publishes_part(self, site: SiteRun) -> bool:
        """Return whether an exploration that a spent budget stopped is published: like the end of a turn."""
        is_spent = self._run_state.stopped_by in {"max_total_states", "max_total_seconds"}
        return self._takes_turns and is_spent and site.status is None

    def _end_turn(self, site: SiteRun, publication: Publication | None) -> None:
        self._run_state.end_turn(site, publication)
        if self._run_state.is_stopping:
            self._run_state.finish(site, "interrupted")
        else:
            self._wait_for_turn(site)

    async def _remove_journal(self, site: SiteRun, explorer: Actor) -> None:
        """Have the explorer remove the journal of a site, which is on its machine."""
        try:
            await asyncio.wait_for(explorer.call("remove_journal", site.task.start_url), _REMOVE_JOURNAL_SECONDS)
        except (ActorError, TimeoutError):
            # The explorer died since. On another machine the file stays; the next run finds a finished journal.
            try:
                await asyncio.to_thread(remove_journal, journal_path(self._settings.store, site.key))
            except OSError as error:
                self._run_state.notify(f"{site.key}: its journal could not be removed. {error}", site=site.key)
