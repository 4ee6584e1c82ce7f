"""How does a bulk run go? Sites wait in a queue, explorers take them, a publisher makes maps of what comes back.

An explorer is a process with one browser, in which many sites are explored at once: one per CPU is enough.
The driver holds a queue, counters and references; captures and vectors stay in Ray's object store.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayError

from pipeline.jobs.actors import Actor, Ref, share, start_actor
from pipeline.jobs.encoding.pool_size import without_gpus
from pipeline.jobs.events import SitePhase
from pipeline.jobs.exploring.explorer_actor import ExplorerActor
from pipeline.jobs.exploring.seats import Explorer, Seats
from pipeline.jobs.failures import (
    MOST_MACHINES,
    CaptureLost,
    MachineLost,
    WorkerLost,
    pause_before,
    policy_of,
    typed,
    verdict,
)
from pipeline.jobs.metrics import RunMetrics
from pipeline.jobs.report.outcomes import Publication, StoppedBy
from pipeline.jobs.run.account import Account, SiteRun
from pipeline.jobs.run.ending import see_to_end
from pipeline.jobs.run.lineup import Lineup
from pipeline.jobs.run.publisher import Publisher, keep_logs
from pipeline.jobs.sites.site_settings import settings_of
from pipeline.jobs.unfinished_work import drop_journal, journal_path
from waygraph.cluster import Cluster, Machine, machines
from waygraph.errors import InUse, WaygraphError
from waygraph.settings import Settings

#: Explorers, and so browsers, that one machine runs at once at most.
_EXPLORERS_PER_MACHINE = 4
#: Of all CPUs, what explorers ask for together; with encoders (`pool_size`) about half, so that a service fits beside.
_EXPLORER_SHARE, _MOST_CPUS_PER_EXPLORER = 0.3, 0.5
#: An explorer explores its sites, and meanwhile tells of its progress and hears what is published and when to stop.
_EXPLORER_CALLS = 4
#: Explored sites that may wait for the publisher, beyond one for each explorer.
_WAITING_CAPTURES = 2
#: An exploration that has not ended so long after its own time limit hangs.
_OVERTIME_SECONDS = 120.0
#: After this long without a free CPU the user is told why nothing happens.
_PATIENCE_SECONDS = 30.0
#: An explorer that no machine has room for is not asked for again for so long, when there are others.
_WITHOUT_ROOM_SECONDS = 60.0
#: Progress of an explorer is told at most this often, and of all of them together so many times a second.
_PROGRESS_SECONDS, _ANSWERS_PER_SECOND = 0.2, 50
#: An explorer that cannot be reached is asked for its progress again after so long.
_UNREACHED_SECONDS = 1.0
#: On a shared cluster, explorers end when they are not asked for their progress for so long.
_UNHEARD_SECONDS = 60.0
#: Running explorations and publications get this long to end when the run is told to stop.
_STOP_SECONDS = 5.0


def _explorers(machines: Sequence[Machine]) -> int:
    """One per CPU, at most four per machine, at least one."""
    return max(1, sum(min(_EXPLORERS_PER_MACHINE, int(machine.cpus)) for machine in machines))


class Run:
    """One bulk run on a connected Ray."""

    def __init__(self, account: Account, settings: Settings, cluster: Cluster, explore: str) -> None:
        self._account = account
        self._settings = settings
        self._cluster = cluster
        self._explore_name = explore
        self._publisher = Publisher(account, settings, cluster)
        self._metrics = RunMetrics(account.work, (site.status for site in account.sites))
        account.listen(self._metrics)
        jobs, places = settings.jobs, self._places(cluster.machines)
        cpus = sum(machine.cpus for machine in places)
        unfinished = account.unfinished
        self._sites_at_once = min(jobs.sites_at_once or _explorers(places), len(unfinished))
        explorers = min(_explorers(places), self._sites_at_once)
        self._sites_each = -(-self._sites_at_once // explorers)
        self._seats = Seats(explorers, self._sites_each)
        self._machine_share = min(1.0, len(places) / explorers)
        self._explorer_cpus = share(_EXPLORER_SHARE * cpus / explorers, _MOST_CPUS_PER_EXPLORER)
        self._captures = asyncio.Semaphore(self._sites_at_once + _WAITING_CAPTURES)
        self._lineup = Lineup(unfinished, lambda site: site.domain)
        self._exploring: set[SiteRun] = set()
        self._actors: list[Actor] = []
        self._followers: set[asyncio.Task[None]] = set()
        self._sites = {site.task.start_url: site for site in account.sites}
        self._publishing: set[asyncio.Task[None]] = set()
        self._lost_workers = False
        self._phase, self._since = "work", time.monotonic()
        self._excused: Counter[str] = Counter()
        """By site: tries that failed of something else, a machine that was lost or another site."""

    def _places(self, machines: Sequence[Machine]) -> Sequence[Machine]:
        """Of some machines, those that explorers may run on."""
        return without_gpus(machines) if self._publisher.uses_gpus else machines

    async def execute(self, stop: asyncio.Event) -> None:
        """Map every site, or as many as there are before `stop` is set."""
        account = self._account
        account.mark("ray_start")
        self._since = time.monotonic()
        work = asyncio.create_task(self._work())
        await see_to_end(
            work,
            stop=stop,
            budget=account.budget,
            begin_stop=self._begin_stop,
            cut_short=self._give_up_exploring,
            out_of_time=self._give_up_publishing,
            order_seconds=_STOP_SECONDS,
            grace_seconds=self._settings.jobs.publish_grace_seconds,
        )
        await self._publisher.report()
        if self._cluster.private is None:  # else they end with it
            for actor in (*self._actors, self._publisher.actor):
                ray.kill(actor)
        account.mark(self._phase, since=self._since)
        if self._lost_workers or self._publisher.lost_workers:
            keep_logs(account, self._cluster)
        if not work.cancelled():
            work.result()  # raises what nothing above could make an outcome of, such as a display that is gone

    async def _work(self) -> None:
        pending: set[asyncio.Task[Any]] = {
            asyncio.create_task(self._explore_sites()) for _ in range(self._sites_at_once)
        }
        pending |= {asyncio.create_task(self._publisher.load()), asyncio.create_task(self._account.completed.wait())}
        try:
            while not self._account.completed.is_set():
                finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    task.result()
        except Exception as error:  # noqa: BLE001 - becomes the outcome of every site that is not finished
            self._account.give_up(typed(error, "The run"))
        finally:
            left = [*pending, *self._publishing, *self._followers]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _begin_stop(self, reason: StoppedBy) -> None:
        if self._phase == "work":
            self._account.mark(self._phase, since=self._since)
            self._phase, self._since = "stop", time.monotonic()
        self._account.stopped_by = reason
        why = "" if reason == "signal" else f" ({reason} is reached)"
        self._account.notice(f"Stopping{why}. Sites that are published stay published.")
        for explorer in self._seats.explorers:
            if explorer.actor is not None:
                explorer.actor.stop.remote()
        for site in self._lineup.drain():
            self._account.finish(site, "interrupted")

    def _give_up_exploring(self) -> None:
        for site in self._exploring:
            self._account.finish(site, "interrupted")

    def _give_up_publishing(self) -> None:
        # Their explorations are in their journals, and vectors in the spool: the next call publishes them.
        left = len(self._publishing)
        self._account.notice(f"{left} explored sites are not waited for any longer. The same command publishes them.")

    # -- exploring -----------------------------------------------------------------------------------------------

    async def _explore_sites(self) -> None:
        """Explore one site after the other, until nobody wants to know any more."""
        while True:
            await self._captures.acquire()
            site = await self._lineup.take()
            self._exploring.add(site)
            try:
                explored = await self._map(site)
            finally:
                self._exploring.discard(site)
                self._lineup.left(site)
            if not explored:
                self._captures.release()

    async def _map(self, site: SiteRun) -> bool:
        """Explore a site and hand it to the publisher; whether there was something to hand over."""
        while True:
            async with self._seats.take(alone=site.alone) as explorer:
                actor = None
                await asyncio.wrap_future(self._account.begin(site))
                try:
                    actor = await self._started(explorer)
                    capture = await self._explore(site, actor)
                except Exception as error:  # noqa: BLE001 - becomes the outcome of the site
                    why = error if actor is None else await verdict(error, actor.ready.remote)
                    failure = typed(why, f"Exploring {site.key}")
                else:
                    publishing = asyncio.create_task(self._publish(site, capture, actor))
                    self._publishing.add(publishing)
                    publishing.add_done_callback(self._publishing.discard)
                    return True
                its_own = True
                if isinstance(failure, WorkerLost):
                    if not isinstance(failure, MachineLost | CaptureLost):
                        its_own = site.alone or self._sites_each == 1  # else it may have been another site's doing
                        site.alone = True
                    self._lost_workers = True
                    if explorer.actor is actor:
                        explorer.actor = None
                        if actor is not None:
                            ray.kill(actor)  # it may live, and cannot be reached
            if not self._is_tried_again_now(site, failure, its_own=its_own):
                return False

    def _is_tried_again_now(self, site: SiteRun, failure: WaygraphError, *, its_own: bool = True) -> bool:
        """What follows from a failed try, the site's own doing or not: another one, now or later, or its outcome."""
        if self._account.interrupted:
            self._account.finish(site, "interrupted")
            return False
        policy = policy_of(failure, excused=self._excused[site.key])
        left_behind = isinstance(failure, InUse) and policy.again == "later"
        if isinstance(failure, MachineLost | CaptureLost) or left_behind or not its_own:
            self._excused[site.key] += 1
            its_own = self._excused[site.key] > MOST_MACHINES
        site.failures += its_own
        if policy.again == "never" or site.failures > self._settings.jobs.site_retries:
            self._account.finish(site, "failed", error=failure, settled=policy.settled)
            return False
        self._account.failed(site)
        self._metrics.tried_again(failure)
        if policy.again == "at once":
            self._account.notice(f"{site.key}: trying again. {failure.message}", site=site.key)
            return True
        pause = pause_before(failure, self._excused[site.key] if left_behind else site.failures)
        later = f"{site.key}: trying again in {pause:.0f} s at the earliest. {failure.message}"
        self._account.notice(later, site=site.key)
        self._lineup.put(site, pause_seconds=pause)
        return False

    async def _explore(self, site: SiteRun, explorer: Actor) -> Ref:
        """Run one exploration; returns the reference of its capture."""
        account, capture = explorer.explore.options(num_returns=2).remote(site.task.start_url, self._publisher.actor)
        limit = settings_of(self._settings, site.key).explore.max_seconds + _OVERTIME_SECONDS
        try:
            self._account.explored(site, await asyncio.wait_for(account, limit))
            self._metrics.found(self._account.budget.states)
        except TimeoutError as error:
            ray.kill(explorer)
            raise WorkerLost(
                f"Exploring {site.key}: no end after {limit:.0f} s.", hint="Its browser probably hangs; try again."
            ) from error
        return capture

    @property
    def _pause(self) -> float:
        """Seconds between two questions for an explorer's progress."""
        return max(_PROGRESS_SECONDS, len(self._seats.explorers) / _ANSWERS_PER_SECOND)

    async def _follow(self, explorer: Actor) -> None:
        """Tell of the progress of an explorer's sites, for as long as it lives."""
        seen = 0
        while True:
            try:
                seen, news = await explorer.progress.remote(seen, self._pause)
            except ActorUnavailableError:
                await asyncio.sleep(_UNREACHED_SECONDS)  # it lives, or Ray does not know yet
                continue
            except RayActorError:
                return  # whoever waits for its explorations deals with it
            for start_url, progress in news.items():
                self._account.progress(self._sites[start_url], progress)
            self._metrics.found(self._account.budget.states)

    async def _started(self, explorer: Explorer) -> Actor:
        async with explorer.starting:
            if explorer.actor is None:
                explorer.actor = await self._start_explorer(explorer)
                follower = asyncio.create_task(self._follow(explorer.actor))
                self._followers.add(follower)
                follower.add_done_callback(self._followers.discard)
            return explorer.actor

    async def _start_explorer(self, place: Explorer) -> Actor:
        now = await asyncio.to_thread(machines)  # some may be gone, and others have come
        allowed = {machine.id for machine in self._places(now)}
        explorer = start_actor(
            ExplorerActor,
            self._settings,
            self._explore_name,
            self._machine_share,
            None if self._cluster.private else _UNHEARD_SECONDS + self._pause,  # a private Ray ends with this process
            cpus=self._explorer_cpus,
            concurrency=self._sites_each + _EXPLORER_CALLS,
            placement="SPREAD",
            avoided=[machine.id for machine in now if machine.id not in allowed],
        )
        self._actors.append(explorer)
        ready = asyncio.ensure_future(explorer.ready.remote())
        finished, _ = await asyncio.wait({ready}, timeout=_PATIENCE_SECONDS)
        if not finished:
            self._account.notice(f"Waiting for {self._explorer_cpus:g} free CPUs in the Ray cluster.")
        while not finished and not self._seats.others_work(place):
            finished, _ = await asyncio.wait({ready}, timeout=_PATIENCE_SECONDS)
        if not finished:
            # Machines may have gone: then there is room for fewer explorers than there were.
            ray.kill(explorer)
            ready.cancel()
            self._seats.avoid(place, _WITHOUT_ROOM_SECONDS)
            raise MachineLost("No machine has room for another explorer.", hint="The others go on with its sites.")
        try:
            await ready
        except Exception as error:
            ray.kill(explorer)  # else it keeps its CPUs
            raise typed(await verdict(error, explorer.ready.remote), "Starting an explorer") from error
        return explorer

    # -- encoding and publishing ---------------------------------------------------------------------------------

    async def _publish(self, site: SiteRun, capture: Ref, explorer: Actor) -> None:
        """Have a capture encoded and published; never raises, since what goes wrong is the site's outcome."""
        try:
            if self._account.interrupted:
                self._account.finish(site, "interrupted")
                return
            self._account.emit(SitePhase(site.key, "encoding", site.attempts))
            publication: Publication = await self._publisher.call(lambda p: p.publish.remote(capture), site.key)
            if site.exploration is not None and not site.exploration.partial:  # else the next run goes on with it
                await self._drop_journal(site, explorer)
            self._account.finish(site, "published", publication=publication)
        except Exception as error:  # noqa: BLE001 - becomes the outcome of the site
            failure = typed(error, f"Publishing {site.key}")
            # The publisher may have died of another capture.
            its_own = not isinstance(failure, WorkerLost) or len(self._publishing) == 1
            if self._is_tried_again_now(site, failure, its_own=its_own):
                self._lineup.put(site)
        finally:
            self._captures.release()

    async def _drop_journal(self, site: SiteRun, explorer: Actor) -> None:
        """Have the explorer, on whose machine it is, remove what would be needed to go on with a site."""
        try:
            await asyncio.wait_for(explorer.published.remote(site.task.start_url), _PATIENCE_SECONDS)
        except (RayError, TimeoutError):
            # It died since then. On another machine the file stays: the next run finds nothing left to do in it.
            try:
                await asyncio.to_thread(drop_journal, journal_path(self._settings.store, site.key))
            except OSError as error:
                self._account.notice(f"{site.key}: what its exploration was kept in stays. {error}", site=site.key)
