"""Fleet of explorers: starts explorer actors where machines have room, and follows their progress."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Self

from waygraph.cluster import ClusterMachine
from waygraph.core.settings import Settings
from waygraph.pipeline.explore.records.capture import ExploreProgress
from waygraph.pipeline.jobs.actors.protocol import Actor, ActorDied, ActorSystem, ActorUnreachable, ObjectRef
from waygraph.pipeline.jobs.call_errors import resolve_actor_error, to_waygraph_error
from waygraph.pipeline.jobs.encoding.pool_size import cpu_share, machines_for_browsers
from waygraph.pipeline.jobs.exploring.turn import Turn
from waygraph.pipeline.jobs.exploring.worker_slots import ExplorerSlot, WorkerSlots
from waygraph.pipeline.jobs.failures import MachineLost, WorkerLost
from waygraph.pipeline.jobs.report.outcomes import Exploration

_EXPLORER = "waygraph.pipeline.jobs.exploring.explorer_actor:ExplorerActor"
#: Maximal number of explorers, each with one browser, per machine.
_EXPLORERS_PER_MACHINE = 4
#: Share of all CPUs that explorers reserve. With encoders (`pool_size`) about half, so that a service fits beside them.
_CPU_SHARE, _MAX_CPUS_PER_EXPLORER = 0.3, 0.5
#: Concurrent calls of an explorer besides its sites: progress, removal of journals, stop.
_EXPLORER_CALLS = 4
#: An exploration that runs this much longer than its time limit is considered hung.
_OVERTIME_SECONDS = 120.0
#: Time without a free CPU after which a notice explains the delay.
_PATIENCE_SECONDS = 30.0
#: Time before an explorer that no machine has room for is requested again, if others work.
_WITHOUT_ROOM_SECONDS = 60.0
#: Minimal interval of progress of one explorer, and maximal rate of answers of all explorers.
_PROGRESS_SECONDS, _ANSWERS_PER_SECOND = 0.2, 50
#: Delay before an unreachable explorer is polled again.
_UNREACHABLE_SECONDS = 1.0
#: On a shared cluster, explorers end when they are not polled for this long.
_MAX_POLL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class FleetSize:
    """Number of explorers, and what each reserves.

    Attributes
    ----------
    explorers
        Maximal number of explorers.
    sites_at_once
        Number of sites that are explored at once.
    sites_each
        Maximal number of sites of one explorer.
    cpus
        CPUs that each explorer reserves.
    machine_share
        Share of its machine that each explorer may use.
    """

    explorers: int
    sites_at_once: int
    sites_each: int
    cpus: float
    machine_share: float

    @classmethod
    def of(cls, machines: Sequence[ClusterMachine], *, sites: int, sites_at_once: int) -> Self:
        """Return the size of a fleet: one explorer per CPU, at most four per machine, at least one.

        Parameters
        ----------
        machines
            Machines that explorers may run on, at least one.
        sites
            Number of sites to explore, at least one.
        sites_at_once
            Setting `jobs.sites_at_once`. 0: as many as explorers.

        Returns
        -------
        FleetSize
            The size.

        Examples
        --------
        >>> FleetSize.of([ClusterMachine("a", 2.0), ClusterMachine("b", 8.0)], sites=100, sites_at_once=12)
        FleetSize(explorers=6, sites_at_once=12, sites_each=2, cpus=0.5, machine_share=0.3333333333333333)
        """
        most = max(1, sum(min(_EXPLORERS_PER_MACHINE, int(machine.cpus)) for machine in machines))
        at_once = min(sites_at_once or most, sites)
        explorers = min(most, at_once)
        cpus = sum(machine.cpus for machine in machines)
        return cls(
            explorers=explorers,
            sites_at_once=at_once,
            sites_each=math.ceil(at_once / explorers),
            cpus=cpu_share(_CPU_SHARE * cpus / explorers, _MAX_CPUS_PER_EXPLORER),
            machine_share=min(1.0, len(machines) / explorers),
        )


class ExplorerFleet:
    """Explorers of a run. They are started when sites need them, and replaced when they die.

    Parameters
    ----------
    settings
        Settings of the run.
    actors
        Where explorers run.
    explore
        `module:function` that explores a site.
    sites
        Number of sites to explore.
    avoid_gpus
        Whether to leave machines with GPUs to encoders.
    on_progress
        Called with the latest progress of sites, by start URL.
    on_notice
        Called with messages for people.

    Attributes
    ----------
    size
        Number of explorers and sites.
    """

    def __init__(
        self,
        settings: Settings,
        actors: ActorSystem,
        explore: str,
        *,
        sites: int,
        avoid_gpus: bool,
        on_progress: Callable[[Mapping[str, ExploreProgress]], None],
        on_notice: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._explore = explore
        self._avoid_gpus = avoid_gpus
        self._on_progress = on_progress
        self._on_notice = on_notice
        self._system = actors
        machines = self._allowed(actors.machines())
        self.size = FleetSize.of(machines, sites=sites, sites_at_once=settings.jobs.sites_at_once)
        self._slots = WorkerSlots(self.size.explorers, self.size.sites_each)
        self._explorers: list[Actor] = []
        self._followers: set[asyncio.Task[None]] = set()

    def _allowed(self, machines: Sequence[ClusterMachine]) -> Sequence[ClusterMachine]:
        return machines_for_browsers(machines) if self._avoid_gpus else machines

    def slot(self, *, alone: bool) -> AbstractAsyncContextManager[ExplorerSlot]:
        """Wait for a slot of an explorer, see `WorkerSlots.take`."""
        return self._slots.take(alone=alone)

    async def actor(self, slot: ExplorerSlot) -> Actor:
        """Return the explorer of a slot, and start it if there is none.

        Parameters
        ----------
        slot
            A slot that is held.

        Returns
        -------
        Actor
            A running explorer.

        Raises
        ------
        MachineLost
            If no machine has room for it and other explorers work.
        WaygraphError
            If it cannot be started.
        """
        async with slot.starting:
            if slot.actor is None:
                slot.actor = await self._start(slot)
                follower = asyncio.create_task(self._follow(slot.actor))
                self._followers.add(follower)
                follower.add_done_callback(self._followers.discard)
            return slot.actor

    async def explore(
        self,
        actor: Actor,
        start_url: str,
        publisher: Actor,
        *,
        max_seconds: float,
        turn: Turn | None = None,
    ) -> tuple[Exploration, ObjectRef]:
        """Explore a site.

        Parameters
        ----------
        actor
            The explorer.
        start_url
            Where to start.
        publisher
            Handle of the publisher, which receives states during the exploration.
        max_seconds
            Time limit of the site. An exploration that runs much longer is considered hung.
        turn
            Turn of the site. None: it is explored to its own limits.

        Returns
        -------
        tuple of Exploration and ObjectRef
            The statistics, and the reference of the capture.

        Raises
        ------
        WorkerLost
            If the exploration hangs. The explorer is killed.
        """
        limit = max_seconds + _OVERTIME_SECONDS
        try:
            return await asyncio.wait_for(actor.call_keeping("explore", start_url, publisher, turn), limit)
        except TimeoutError as error:
            actor.kill()
            raise WorkerLost(
                f"Exploring {start_url} did not end within {limit:.0f} s.",
                hint="Its browser probably hangs. Run the command again.",
            ) from error

    def discard(self, slot: ExplorerSlot, actor: Actor | None) -> None:
        """Kill an explorer that is lost, so that the next site of its slot starts another one.

        Parameters
        ----------
        slot
            The slot.
        actor
            The lost explorer, or None if it could not be started.
        """
        if slot.actor is actor:
            slot.actor = None
            if actor is not None:
                actor.kill()  # it may be alive and unreachable

    def stop(self) -> None:
        """Ask all explorers to end their explorations."""
        for slot in self._slots.explorers:
            if slot.actor is not None:
                slot.actor.tell("stop")

    def kill(self) -> None:
        """Kill all explorers."""
        for actor in self._explorers:
            actor.kill()

    async def close(self) -> None:
        """Stop following the progress of explorers."""
        followers = list(self._followers)
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)

    async def _start(self, slot: ExplorerSlot) -> Actor:
        machines = await asyncio.to_thread(self._system.machines)  # the cluster may have changed
        allowed = {machine.id for machine in self._allowed(machines)}
        actor = self._system.start(
            _EXPLORER,
            self._settings,
            self._explore,
            self.size.machine_share,
            None if self._system.ends_with_coordinator else _MAX_POLL_SECONDS + self._poll_seconds,
            cpus=self.size.cpus,
            concurrency=self.size.sites_each + _EXPLORER_CALLS,
            placement="SPREAD",
            avoided=[machine.id for machine in machines if machine.id not in allowed],
        )
        self._explorers.append(actor)
        ready = asyncio.ensure_future(actor.call("ready"))
        await self._wait_for_room(slot, actor, ready)
        try:
            await ready
        except Exception as error:
            actor.kill()  # to free its CPUs
            raise to_waygraph_error(
                await resolve_actor_error(error, partial(actor.call, "ready")), "Starting an explorer"
            ) from error
        return actor

    async def _wait_for_room(self, slot: ExplorerSlot, actor: Actor, ready: asyncio.Future[int]) -> None:
        """Wait until an explorer is `ready`. Give it up if no machine has room for it and others work."""
        finished, _ = await asyncio.wait({ready}, timeout=_PATIENCE_SECONDS)
        if not finished:
            self._on_notice(
                f"Still waiting for an explorer: it is starting, or waits for {self.size.cpus:g} CPUs of a cluster."
            )
        while not finished and not self._slots.others_work(slot):
            finished, _ = await asyncio.wait({ready}, timeout=_PATIENCE_SECONDS)
        if finished:
            return
        # Machines may be gone, so that there is room for fewer explorers.
        actor.kill()
        ready.cancel()
        self._slots.avoid(slot, _WITHOUT_ROOM_SECONDS)
        raise MachineLost(
            "No machine has room for another explorer.", hint="The other explorers continue with its sites."
        )

    @property
    def _poll_seconds(self) -> float:
        """Interval between two polls of an explorer, in seconds."""
        return max(_PROGRESS_SECONDS, self.size.explorers / _ANSWERS_PER_SECOND)

    async def _follow(self, actor: Actor) -> None:
        """Report the progress of an explorer's sites until it dies."""
        version = 0
        while True:
            try:
                version, progress = await actor.call("progress", version, self._poll_seconds)
            except ActorUnreachable:
                await asyncio.sleep(_UNREACHABLE_SECONDS)  # it is alive, or Ray has not noticed yet
                continue
            except ActorDied:
                return  # the tasks that wait for its explorations handle it
            self._on_progress(progress)
