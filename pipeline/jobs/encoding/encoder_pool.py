"""Who encodes which batch, and how many encoders are there? A line of batches, and encoders that come and go.

The line is bounded: whoever adds to it waits while it is full. An encoder that dies loses nothing, see
`pipeline.jobs.encoding.batches`; how many there are follows the line, see `pipeline.jobs.encoding.pool_size`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ray

from index.graph import Observation
from pipeline.encode.protocol import SiteContext
from pipeline.jobs.actors import Actor
from pipeline.jobs.encoding.batches import Batch, after_loss, learned_size, most_losses, take
from pipeline.jobs.encoding.encoder_actor import Encoded, EncoderIdentity, Unencodable
from pipeline.jobs.encoding.pool_size import IDLE_SECONDS, IN_FLIGHT, Demand, wanted
from pipeline.jobs.encoding.vector_spool import Spool
from pipeline.jobs.failures import MOST_MACHINES, EncoderLost, MachineLost, WorkerLost, typed, verdict
from pipeline.jobs.metrics import EncodingMetrics
from pipeline.jobs.report.outcomes import EncodingReport
from waygraph.errors import EncoderMismatch, WaygraphError

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Job:
    """A state to be encoded. `done` gives None when its vectors are spooled, or why it gets none."""

    key: str
    observation: Observation
    spool: Spool
    done: asyncio.Future[Unencodable | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True, eq=False)
class _Member:
    actor: Actor
    ready: bool = False
    lost: bool = False
    batches: list[Batch[Job]] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)
    """Since when it is idle, or has something to do (monotonic clock)."""


class EncoderPool:
    """Encoder actors and the line before them. All methods must be called in one event loop.

    Parameters
    ----------
    start : starts one encoder actor.
    keep : told of every batch as soon as it is encoded, before anybody is told that it is done.
    least, most : encoders.
    size : states in a batch at most.
    room : states that may wait.
    metrics : told how long the line is, and what comes out of it.

    """

    def __init__(
        self,
        start: Callable[[], Actor],
        keep: Callable[[Sequence[Job], Sequence[Encoded]], Awaitable[None]],
        *,
        least: int,
        most: int,
        size: int,
        room: int,
        metrics: EncodingMetrics | None = None,
    ) -> None:
        self._start_actor = start
        self._keep = keep
        self._least, self._most = least, max(least, most)
        self._size, self._room = size, room
        self._metrics = metrics
        self._most_losses = most_losses(size)
        self._line: list[Batch[Job]] = []
        self._members: list[_Member] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()
        self._error: WaygraphError | None = None
        self._losses = 0
        """Encoders that died since one did anything."""
        self.identity: EncoderIdentity | None = None
        self._counts = {"batches": 0, "states": 0, "unencodable": 0, "splits": 0, "lost": 0, "started": 0, "most": 0}
        self._busy = self._fed = 0.0

    # -- what others ask of it -----------------------------------------------------------------------------------

    async def load(self) -> EncoderIdentity:
        """Wait until an encoder is loaded; starts the first ones.

        Raises
        ------
        WaygraphError
            When none can be.

        """
        self._dispatch()
        async with self._changed:
            await self._changed.wait_for(lambda: self.identity is not None or self._error is not None)
        if self.identity is None or self._error is not None:
            raise self._failure()
        return self.identity

    async def prepare_site(self, counts: object) -> SiteContext:
        """See `Encoder.prepare_site`; tried again when the encoder dies."""
        while True:
            await self.load()
            async with self._changed:
                await self._changed.wait_for(lambda: self._error is not None or any(m.ready for m in self._members))
            if self._error is not None:
                raise self._failure()
            member = min((m for m in self._members if m.ready), key=lambda m: len(m.batches))
            try:
                context: SiteContext = await member.actor.prepare_site.remote(counts)
            except Exception as error:
                failure = typed(await verdict(error, member.actor.process.remote), "Preparing a site")
                if not isinstance(failure, WorkerLost):
                    raise failure from error
                self._lose(member, failure)
            else:
                return context

    async def add(self, batch: Batch[Job]) -> None:
        """Put a batch into the line; waits while that is full.

        Raises
        ------
        WaygraphError
            When there are no encoders any more.

        """
        since = time.monotonic()
        try:
            await self._wait_for_room(len(batch))
        except BaseException:
            for job in batch.items:
                _fail(job, self._failure())  # nobody is to wait for what never got into the line
            raise
        self._line.append(batch)
        if self._metrics is not None:
            self._metrics.waited(time.monotonic() - since)
        self._dispatch()

    async def _wait_for_room(self, states: int) -> None:
        async with self._changed:
            # A batch that is larger than the room gets in when nothing else waits.
            await self._changed.wait_for(
                lambda: self._error is not None or not self._line or self._waiting + states <= self._room
            )
        if self._error is not None:
            raise self._failure()

    @property
    def _waiting(self) -> int:
        return sum(map(len, self._line))

    def report(self) -> EncodingReport:
        """What was done so far."""
        now = time.monotonic()
        fed = self._fed + sum(now - member.since for member in self._members if member.batches)
        identity = self.identity
        return EncodingReport(
            encoder=identity.name if identity is not None else "",
            actors_started=self._counts["started"],
            actors_lost=self._counts["lost"],
            actors_at_once=self._counts["most"],
            batches=self._counts["batches"],
            splits=self._counts["splits"],
            states=self._counts["states"],
            unencodable=self._counts["unencodable"],
            fed_seconds=round(fed, 3),
            busy_seconds=round(self._busy, 3),
        )

    # -- who encodes what ----------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Hand out as many batches as there are encoders for, and see to it that there are enough of those."""
        if self._error is not None:
            return
        while self._line and (member := self._free_for(self._line[0])) is not None:
            batch = take(self._line, self._size)
            if not member.batches:
                member.since = time.monotonic()
            member.batches.append(batch)
            self._spawn(self._encode(member, batch))
        self._scale()
        if self._metrics is not None:
            self._metrics.line(self._waiting, len(self._members))
        self._spawn(self._tell())

    def _free_for(self, batch: Batch[Job]) -> _Member | None:
        most = 1 if batch.alone else IN_FLIGHT
        free = [m for m in self._members if m.ready and len(m.batches) < most and not any(b.alone for b in m.batches)]
        return min(free, key=lambda m: len(m.batches), default=None)

    async def _encode(self, member: _Member, batch: Batch[Job]) -> None:
        observations = [job.observation for job in batch.items]
        try:
            encoded, seconds = await member.actor.encode.remote(observations, batch.context)
        except Exception as error:  # noqa: BLE001 - whatever it is, the batch is done again elsewhere
            self._lose(member, typed(await verdict(error, member.actor.process.remote), "Encoding"), batch)
            return
        if member.lost:
            return  # its batches were given to others already
        member.batches.remove(batch)
        self._losses = 0
        self._busy += seconds
        if not member.batches:
            self._fed += time.monotonic() - member.since
            member.since = time.monotonic()
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._dispatch)
        self._counts["batches"] += 1
        self._counts["states"] += len(batch)
        if self._metrics is not None:
            self._metrics.encoded(len(batch))
        if (size := learned_size(batch)) is not None and size < self._size:
            self._size = size
            log.warning("encode/batch_size %d states at once lost an encoder, %d did not", size * 2, size)
        self._dispatch()
        await self._finish(batch.items, encoded)

    async def _finish(self, jobs: Sequence[Job], encoded: Sequence[Encoded]) -> None:
        try:
            await self._keep(jobs, encoded)
        except Exception as error:  # noqa: BLE001 - becomes the outcome of whoever waits for these states
            failure = typed(error, "Keeping vectors")
            for job in jobs:
                _fail(job, failure)
            return
        for job, page in zip(jobs, encoded, strict=True):
            reason = page if isinstance(page, Unencodable) else None
            self._counts["unencodable"] += reason is not None
            if not job.done.done():
                job.done.set_result(reason)

    # -- encoders come and go ------------------------------------------------------------------------------------

    def _scale(self) -> None:
        now, idle = time.monotonic(), [m for m in self._members if m.ready and not m.batches]
        demand = Demand(
            encoders=len(self._members),
            starting=sum(not member.ready for member in self._members),
            waiting=len(self._line) if any(b.alone for b in self._line) else -(-self._waiting // self._size),
            idle_seconds=max((now - member.since for member in idle), default=0.0),
        )
        target = wanted(demand, self._least, self._most)
        for _ in range(target - len(self._members)):
            member = _Member(self._start_actor())
            self._members.append(member)
            self._counts["started"] += 1
            self._spawn(self._load(member))
        if target < len(self._members):
            self._release(min(idle, key=lambda member: member.since))
        self._counts["most"] = max(self._counts["most"], len(self._members))

    def _release(self, member: _Member) -> None:
        member.lost = True
        self._members.remove(member)
        ray.kill(member.actor)

    async def _load(self, member: _Member) -> None:
        try:
            identity: EncoderIdentity = await member.actor.load.remote()
        except Exception as error:  # noqa: BLE001 - the pool goes on without it, or ends
            self._lose(member, typed(await verdict(error, member.actor.process.remote), "Loading the encoder"))
            return
        if self.identity is not None and identity != self.identity:
            mismatch = EncoderMismatch(
                f"The encoder is {self.identity.fingerprint} on one machine and {identity.fingerprint} on another.",
                hint="Set WAYGRAPH_ENCODE__DTYPE and the weights, so that they are the same everywhere.",
            )
            self._lose(member, mismatch)
            return
        self.identity = identity
        member.ready = True
        member.since = time.monotonic()
        self._dispatch()

    def _lose(self, member: _Member, failure: WaygraphError, culprit: Batch[Job] | None = None) -> None:
        """An encoder died or is not to be trusted any more: give its batches to others.

        `culprit` is the batch whose call failed. When the process died, those of all its other batches failed as well,
        and which of them was computed is not known. When its machine went away, that was no batch's doing: all are done
        again as they are, and no death in a row is counted. A batch that was there when too many machines went away is
        treated like any other that was in an encoder that died.
        """
        if member.lost:
            return
        self._release(member)
        with_machine = isinstance(failure, MachineLost)
        self._losses += not with_machine
        self._counts["lost"] += 1
        log.warning("encode/lost %s", failure.message)
        if member.batches:
            self._fed += time.monotonic() - member.since
        died = isinstance(failure, WorkerLost)
        for batch in reversed(member.batches):
            if with_machine and batch.machines < MOST_MACHINES:
                self._line.insert(0, replace(batch, machines=batch.machines + 1))
                continue
            if not died and batch is not culprit:
                self._line.insert(0, batch)
                continue
            again = after_loss(batch, was_alone=len(member.batches) == 1 or not died)
            self._counts["splits"] += len(again) > 1
            self._line[:0] = again
            if not again:
                self._spawn(self._finish(batch.items, [Unencodable(failure.message)] * len(batch)))
        if not died and not member.ready:
            # It cannot be loaded: there, or at all.
            if self.identity is None or self._least >= len(self._members) + 1:
                self._give_up(failure)
            self._most = max(self._least, len(self._members))
        elif self._losses > self._most_losses:
            self._give_up(
                EncoderLost(
                    f"{self._losses} encoders died one after the other, whatever they were given. {failure.message}",
                    hint="Its logs are in the run's folder. Often memory ran out: try fewer encoders, smaller batches.",
                )
            )
        self._dispatch()

    def _give_up(self, error: WaygraphError) -> None:
        self._error = error
        left = [*self._line, *(batch for member in self._members for batch in member.batches)]
        for member in list(self._members):
            self._release(member)
        self._line.clear()
        for batch in left:
            for job in batch.items:
                _fail(job, error)
        self._spawn(self._tell())

    def _failure(self) -> WaygraphError:
        return self._error or EncoderLost("There are no encoders any more.")

    # -- tasks ---------------------------------------------------------------------------------------------------

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _fail(job: Job, error: WaygraphError) -> None:
    if not job.done.done():
        job.done.set_exception(error)
        job.done.exception()  # somebody may have stopped waiting: not an error of its own
