"""Pool of encoder actors with a bounded queue of batches.

Callers that add to a full queue wait. A dying encoder loses no batch, see
`waygraph.pipeline.jobs.failures.decide_batch_retry`. The size of the pool follows the queue, see
`waygraph.pipeline.jobs.encoding.pool_size`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any

from waygraph.core.errors import EncoderMismatch, WaygraphError
from waygraph.index.graph import Observation
from waygraph.pipeline.encode.protocol import SiteContext
from waygraph.pipeline.jobs.actors.protocol import Actor
from waygraph.pipeline.jobs.call_errors import resolve_actor_error, to_waygraph_error
from waygraph.pipeline.jobs.encoding.batches import StateBatch, batches_to_retry, learn_batch_size, take_batch
from waygraph.pipeline.jobs.encoding.encoder_actor import EncodeResult, EncoderIdentity, Unencodable
from waygraph.pipeline.jobs.encoding.pool_size import BATCHES_IN_FLIGHT, IDLE_SECONDS, EncoderDemand, target_size
from waygraph.pipeline.jobs.encoding.vector_spool import VectorSpool
from waygraph.pipeline.jobs.failures import (
    EncoderLost,
    MachineLost,
    PoolAction,
    PoolLoss,
    WorkerLost,
    decide_batch_retry,
    decide_pool_action,
    max_losses_in_row,
)
from waygraph.pipeline.jobs.metrics import EncodingMetrics
from waygraph.pipeline.jobs.report.outcomes import EncodingReport

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class EncodeJob:
    """A state to encode. `done` results in None when its vectors are spooled, or in the reason why it gets none."""

    key: str
    observation: Observation
    spool: VectorSpool
    done: asyncio.Future[Unencodable | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits of an encoder pool.

    Attributes
    ----------
    least
        Minimal number of encoders.
    most
        Maximal number of encoders. A smaller number than `least` has no effect.
    batch_states
        Maximal number of states of a batch.
    waiting_states
        Maximal number of waiting states.
    """

    least: int
    most: int
    batch_states: int
    waiting_states: int


class _MemberState(Enum):
    LOADING = auto()
    READY = auto()
    RELEASED = auto()
    """Out of the pool: it was idle, died or misbehaved. Its batches are reassigned."""


@dataclass(slots=True, eq=False)
class _Member:
    actor: Actor
    state: _MemberState = _MemberState.LOADING
    batches: list[StateBatch[EncodeJob]] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)
    """Start of its idle or busy period (monotonic clock)."""

    @property
    def is_ready(self) -> bool:
        return self.state is _MemberState.READY

    def can_take(self, batch: StateBatch[EncodeJob]) -> bool:
        most = 1 if batch.alone else BATCHES_IN_FLIGHT
        return self.is_ready and len(self.batches) < most and not any(each.alone for each in self.batches)


@dataclass(slots=True)
class _Counts:
    """Totals for `EncodingReport`."""

    batches: int = 0
    states: int = 0
    unencodable: int = 0
    splits: int = 0
    lost: int = 0
    started: int = 0
    at_once: int = 0
    busy_seconds: float = 0.0
    seconds_with_work: float = 0.0


class EncoderPool:
    """Encoder actors and their queue. All methods must be called in one event loop.

    Parameters
    ----------
    start
        Starts one encoder actor.
    keep
        Stores the vectors of a batch. Awaited before the batch is reported as done.
    limits
        Limits of the pool.
    metrics
        Metrics of the queue.
    """

    def __init__(
        self,
        start: Callable[[], Actor],
        keep: Callable[[Sequence[EncodeJob], Sequence[EncodeResult]], Awaitable[None]],
        limits: PoolLimits,
        *,
        metrics: EncodingMetrics | None = None,
    ) -> None:
        self._start_actor = start
        self._keep = keep
        self._least, self._most = limits.least, max(limits.least, limits.most)
        self._batch_states, self._max_waiting = limits.batch_states, limits.waiting_states
        self._metrics = metrics
        self._max_losses = max_losses_in_row(limits.batch_states)
        self._queue: list[StateBatch[EncodeJob]] = []
        self._members: list[_Member] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()
        self._error: WaygraphError | None = None
        """Why the pool failed. A failed pool encodes nothing any more."""
        self._losses = 0
        """Encoders that died since the last finished batch."""
        self._counts = _Counts()
        self.identity: EncoderIdentity | None = None

    # -- callers -----------------------------------------------------------------------------------------------------

    async def load(self) -> EncoderIdentity:
        """Start the first encoders and wait until one is loaded.

        Returns
        -------
        EncoderIdentity
            Properties of the encoder.

        Raises
        ------
        WaygraphError
            If no encoder can be loaded.
        """
        self._dispatch()
        async with self._changed:
            await self._changed.wait_for(lambda: self.identity is not None or self._error is not None)
        if self.identity is None or self._error is not None:
            raise self._failure()
        return self.identity

    async def prepare_site(self, counts: object) -> SiteContext:
        """Call `Encoder.prepare_site`. Retried if the encoder dies."""
        while True:
            await self.load()
            member = await self._least_busy()
            try:
                context: SiteContext = await member.actor.call("prepare_site", counts)
            except Exception as error:
                failure = await _failure_of(member, error, "Preparing a site")
                if not isinstance(failure, WorkerLost):
                    raise failure from error
                self._lose(member, failure)
            else:
                return context

    async def _least_busy(self) -> _Member:
        async with self._changed:
            await self._changed.wait_for(lambda: self._error is not None or any(m.is_ready for m in self._members))
        if self._error is not None:
            raise self._failure()
        return min((m for m in self._members if m.is_ready), key=lambda m: len(m.batches))

    async def add(self, batch: StateBatch[EncodeJob]) -> None:
        """Add a batch to the queue. Waits while it is full.

        Parameters
        ----------
        batch
            States to encode. They fail with the same error if the batch cannot be added.

        Raises
        ------
        WaygraphError
            If there are no encoders any more.
        """
        since = time.monotonic()
        try:
            await self._wait_for_room(len(batch))
        except BaseException:
            for job in batch.items:
                _fail(job, self._failure())  # callers must not wait for a batch that was never queued
            raise
        self._queue.append(batch)
        if self._metrics is not None:
            self._metrics.observe_wait(time.monotonic() - since)
        self._dispatch()

    async def _wait_for_room(self, states: int) -> None:
        async with self._changed:
            # A batch that is larger than the limit is accepted when nothing else waits.
            await self._changed.wait_for(
                lambda: self._error is not None or not self._queue or self._waiting + states <= self._max_waiting
            )
        if self._error is not None:
            raise self._failure()

    @property
    def _waiting(self) -> int:
        return sum(map(len, self._queue))

    def report(self) -> EncodingReport:
        """Return what was done so far."""
        now, counts = time.monotonic(), self._counts
        unfinished = sum(now - member.since for member in self._members if member.batches)
        return EncodingReport(
            encoder=self.identity.name if self.identity is not None else "",
            actors_started=counts.started,
            actors_lost=counts.lost,
            actors_at_once=counts.at_once,
            batches=counts.batches,
            splits=counts.splits,
            states=counts.states,
            unencodable=counts.unencodable,
            fed_seconds=round(counts.seconds_with_work + unfinished, 3),
            busy_seconds=round(counts.busy_seconds, 3),
        )

    # -- dispatching -------------------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Assign waiting batches to encoders, and adapt the number of encoders."""
        if self._error is not None:
            return
        while self._queue and (member := self._free_for(self._queue[0])) is not None:
            batch = take_batch(self._queue, self._batch_states)
            if not member.batches:
                member.since = time.monotonic()
            member.batches.append(batch)
            self._spawn(self._encode(member, batch))
        self._scale()
        if self._metrics is not None:
            self._metrics.set_queue(self._waiting, encoders=len(self._members))
        self._spawn(self._notify())

    def _free_for(self, batch: StateBatch[EncodeJob]) -> _Member | None:
        free = [member for member in self._members if member.can_take(batch)]
        return min(free, key=lambda member: len(member.batches), default=None)

    async def _encode(self, member: _Member, batch: StateBatch[EncodeJob]) -> None:
        observations = [job.observation for job in batch.items]
        try:
            results, seconds = await member.actor.call("encode", observations, batch.context)
        except Exception as error:  # noqa: BLE001 - the batch is retried whatever the error is
            self._lose(member, await _failure_of(member, error, "Encoding"), batch)
            return
        if member.state is _MemberState.RELEASED:
            return  # its batches are reassigned already
        self._count_encoded(member, batch, seconds)
        if (size := learn_batch_size(batch)) is not None and size < self._batch_states:
            self._batch_states = size
            log.warning(
                "encode/batch_size batches of %d states killed an encoder, batches of %d did not", size * 2, size
            )
        self._dispatch()
        await self._finish(batch.items, results)

    def _count_encoded(self, member: _Member, batch: StateBatch[EncodeJob], seconds: float) -> None:
        member.batches.remove(batch)
        self._losses = 0
        self._counts.busy_seconds += seconds
        if not member.batches:
            self._counts.seconds_with_work += time.monotonic() - member.since
            member.since = time.monotonic()
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._dispatch)
        self._counts.batches += 1
        self._counts.states += len(batch)
        if self._metrics is not None:
            self._metrics.count_states(len(batch))

    async def _finish(self, jobs: Sequence[EncodeJob], results: Sequence[EncodeResult]) -> None:
        try:
            await self._keep(jobs, results)
        except Exception as error:  # noqa: BLE001 - becomes the outcome of every site that waits for these states
            failure = to_waygraph_error(error, "Keeping vectors")
            for job in jobs:
                _fail(job, failure)
            return
        for job, result in zip(jobs, results, strict=True):
            unencodable = result if isinstance(result, Unencodable) else None
            self._counts.unencodable += unencodable is not None
            if not job.done.done():
                job.done.set_result(unencodable)

    # -- members -----------------------------------------------------------------------------------------------------

    def _scale(self) -> None:
        now, idle = time.monotonic(), [member for member in self._members if member.is_ready and not member.batches]
        any_alone = any(batch.alone for batch in self._queue)
        demand = EncoderDemand(
            encoders=len(self._members),
            starting=sum(not member.is_ready for member in self._members),
            waiting=len(self._queue) if any_alone else math.ceil(self._waiting / self._batch_states),
            idle_seconds=max((now - member.since for member in idle), default=0.0),
        )
        target = target_size(demand, self._least, self._most)
        for _ in range(target - len(self._members)):
            member = _Member(self._start_actor())
            self._members.append(member)
            self._counts.started += 1
            self._spawn(self._load(member))
        if target < len(self._members):
            self._release(min(idle, key=lambda member: member.since))
        self._counts.at_once = max(self._counts.at_once, len(self._members))

    def _release(self, member: _Member) -> None:
        member.state = _MemberState.RELEASED
        self._members.remove(member)
        member.actor.kill()

    async def _load(self, member: _Member) -> None:
        try:
            identity: EncoderIdentity = await member.actor.call("load")
        except Exception as error:  # noqa: BLE001 - the pool continues without it, or fails
            self._lose(member, await _failure_of(member, error, "Loading the encoder"))
            return
        if self.identity is not None and identity != self.identity:
            mismatch = EncoderMismatch(
                f"The encoder is {self.identity.fingerprint} on one machine and {identity.fingerprint} on another.",
                hint="Set WAYGRAPH_ENCODE__DTYPE and the weights, so that they are the same everywhere.",
            )
            self._lose(member, mismatch)
            return
        self.identity = identity
        member.state = _MemberState.READY
        member.since = time.monotonic()
        self._dispatch()

    # -- losses ------------------------------------------------------------------------------------------------------

    def _lose(self, member: _Member, failure: WaygraphError, failed_batch: StateBatch[EncodeJob] | None = None) -> None:
        """Remove an encoder that died or misbehaves, and requeue its batches.

        Parameters
        ----------
        member
            The encoder. One that was released already is ignored.
        failure
            Why it is removed.
        failed_batch
            The batch whose call failed, if one did.
        """
        if member.state is _MemberState.RELEASED:
            return
        was_loaded = member.is_ready
        self._release(member)
        self._losses += not isinstance(failure, MachineLost)
        self._counts.lost += 1
        log.warning("encode/lost %s", failure.message)
        if member.batches:
            self._counts.seconds_with_work += time.monotonic() - member.since
        self._requeue(member.batches, failure, failed_batch)
        loss = PoolLoss(
            was_loaded=was_loaded,
            any_loaded=self.identity is not None,
            remaining=len(self._members),
            least=self._least,
            in_a_row=self._losses,
            max_in_a_row=self._max_losses,
        )
        self._apply(decide_pool_action(failure, loss), failure)
        self._dispatch()

    def _requeue(
        self,
        batches: Sequence[StateBatch[EncodeJob]],
        failure: WaygraphError,
        failed_batch: StateBatch[EncodeJob] | None,
    ) -> None:
        for batch in reversed(batches):  # each goes to the front of the queue, so that they keep their order
            retry = decide_batch_retry(
                failure,
                batch.losses,
                states=len(batch),
                alone=len(batches) == 1,
                failed_call=batch is failed_batch,
            )
            self._queue[:0] = batches_to_retry(batch, retry)
            self._counts.splits += retry.action == "split"
            if retry.action == "give up":
                self._spawn(self._finish(batch.items, [Unencodable(failure.message)] * len(batch)))

    def _apply(self, action: PoolAction, failure: WaygraphError) -> None:
        if action == "stop growing":
            self._most = max(self._least, len(self._members))
        elif action == "fail":
            self._fail_pool(failure)
        elif action == "fail as lost":
            self._fail_pool(
                EncoderLost(
                    f"{self._losses} encoders died one after the other. {failure.message}",
                    hint="Their logs are in the run's folder. Often memory ran out: use fewer encoders, or smaller "
                    "batches.",
                )
            )

    def _fail_pool(self, error: WaygraphError) -> None:
        self._error = error
        left = [*self._queue, *(batch for member in self._members for batch in member.batches)]
        for member in list(self._members):
            self._release(member)
        self._queue.clear()
        for batch in left:
            for job in batch.items:
                _fail(job, error)
        self._spawn(self._notify())

    def _failure(self) -> WaygraphError:
        return self._error or EncoderLost("There are no encoders any more.")

    # -- tasks -------------------------------------------------------------------------------------------------------

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _failure_of(member: _Member, error: Exception, where: str) -> WaygraphError:
    return to_waygraph_error(await resolve_actor_error(error, partial(member.actor.call, "process")), where)


def _fail(job: EncodeJob, error: WaygraphError) -> None:
    if not job.done.done():
        job.done.set_exception(error)
        job.done.exception()  # retrieve it, since its caller may be cancelled
