"""Slots for busy pages: their number is searched by measuring the finished work per second, not by counting cores."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from types import TracebackType
from typing import Self

log = logging.getLogger(__name__)

#: Initial slots per CPU. While one page waits for its site, another one computes.
SLOTS_PER_CPU = 1.5
#: Fewest slots. With one page alone the machine is idle whenever its site does not answer.
MIN_SLOTS = 2
#: Most slots per CPU that autoscaling tries.
_MAX_SLOTS_PER_CPU = 4


class Slots:
    """Slots for work that keeps the machine busy. Waiting for a host's turn needs none. For one event loop.

    Parameters
    ----------
    limit
        Initial number of slots. None: `SLOTS_PER_CPU` for every CPU that this process may use, at least `MIN_SLOTS`.
    most
        Largest number of slots; None: four per CPU. Equal to `limit` switches autoscaling off.
    """

    def __init__(self, limit: int | None = None, *, most: int | None = None) -> None:
        cpus = len(os.sched_getaffinity(0))
        self.limit = max(MIN_SLOTS, round(SLOTS_PER_CPU * cpus)) if limit is None else max(1, limit)
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._autoscaler = SlotAutoscaler(
            self.limit, least=min(MIN_SLOTS, self.limit), most=max(self.limit, most or _MAX_SLOTS_PER_CPU * cpus)
        )

    @property
    def busy(self) -> int:
        """Slots that are held."""
        return self._busy

    def lease(self, *, limit_seconds: float | None = None) -> SlotLease:
        """Return a lease of one slot, to be used with `async with`, once.

        Parameters
        ----------
        limit_seconds
            Longest time that the slot is held at a stretch, in seconds. It is then released, so that a page that hangs
            holds none.

        Returns
        -------
        SlotLease
            Acquires the slot when it is entered.
        """
        return SlotLease(self, limit_seconds)

    async def acquire(self) -> None:
        """Wait for a slot; first come, first served."""
        if self._busy < self.limit and not self._waiting:
            self._busy += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._waiting.remove(waiter)
            else:
                self.release()
            raise

    def release(self) -> None:
        """Release a slot, and admit the next waiter."""
        self._busy -= 1
        self._admit()

    def record_finished(self) -> None:
        """Count a finished piece of work, and adapt the number of slots to the finished work per second."""
        limit = self._autoscaler.record_finished(asyncio.get_running_loop().time(), in_demand=bool(self._waiting))
        if limit != self.limit:
            log.info("slots/limit %d -> %d", self.limit, limit)
            self.limit = limit
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._busy < self.limit:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._busy += 1
                waiter.set_result(None)


class SlotLease:
    """One slot, held from entering to leaving, except while it is released.

    Parameters
    ----------
    slots
        Where the slot comes from.
    limit_seconds
        Longest time that the slot is held at a stretch, in seconds; None for no limit.
    """

    def __init__(self, slots: Slots, limit_seconds: float | None) -> None:
        self._slots = slots
        self._limit_seconds = limit_seconds
        self._timer: asyncio.TimerHandle | None = None
        self.held = False
        self.expired = False
        """Whether the slot was released because it was held for too long."""

    async def acquire(self) -> None:
        """Wait for a slot and hold it; return at once if one is held."""
        if self.held:
            return
        await self._slots.acquire()
        if self._is_held():
            # The guard waits for the turn of a redirect at the same time as the worker. The first one holds the slot.
            self._slots.release()
            return
        self.held = True
        if self._limit_seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._limit_seconds, self._expire)

    def _is_held(self) -> bool:
        return self.held  # A method, because type checkers assume that `held` does not change during an await.

    def release(self) -> None:
        """Release the slot, for instance while waiting for something that needs no CPU time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.held:
            self.held = False
            self._slots.release()

    def _expire(self) -> None:
        log.warning("slots/expired: a page was busy for more than %.0f s", self._limit_seconds)
        self.expired = True
        self.release()

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        if kind is None:
            self._slots.record_finished()


class SlotAutoscaler:
    """Hill climbing for the number of slots that finishes the most work per second.

    Each step changes the number by one. It is kept if it pays, and otherwise reverted.

    Parameters
    ----------
    limit
        Initial number of slots.
    least
        Fewest slots.
    most
        Most slots.
    """

    #: A window ends after this many items and seconds; with less, chance would decide.
    WINDOW_ITEMS, WINDOW_S = 40, 15.0
    #: Relative gain in finished work per second that one more slot must bring to be kept, and loss that one slot fewer
    #: may cost.
    MIN_GAIN = 0.05
    #: Windows that pass after a reverted step before the next one.
    REST_WINDOWS = 4

    def __init__(self, limit: int, *, least: int, most: int) -> None:
        self.limit = limit
        self._least, self._most = least, most
        self._direction = 1
        self._before: tuple[int, float] | None = None
        """Number of slots before the step that is being tried, and its finished work per second."""
        self._rest = 0
        self._began: float | None = None
        self._items = 0
        self._demanded = 0

    def record_finished(self, now: float, *, in_demand: bool) -> int:
        """Count one finished piece of work, and return the number of slots to use from now on.

        Parameters
        ----------
        now
            Time in seconds.
        in_demand
            Whether others wait for a slot. Without demand the number of slots has no effect and is left unchanged.

        Returns
        -------
        int
            Between `least` and `most`.
        """
        if self._began is None:
            self._began = now
            return self.limit
        self._items += 1
        self._demanded += in_demand
        seconds = now - self._began
        if self._items >= self.WINDOW_ITEMS and seconds >= self.WINDOW_S:
            has_effect = 2 * self._demanded > self._items
            self._end_window(self._items / seconds, has_effect=has_effect)
            self._began, self._items, self._demanded = now, 0, 0
        return self.limit

    def _end_window(self, rate: float, *, has_effect: bool) -> None:
        if not has_effect:
            self._before = None
            return
        if self._before is not None:
            limit, rate_before = self._before
            if self.limit > limit:
                pays = rate >= rate_before * (1 + self.MIN_GAIN)
            else:
                pays = rate * (1 + self.MIN_GAIN) >= rate_before
            self._before = None
            if not pays:
                self.limit, self._direction, self._rest = limit, -self._direction, self.REST_WINDOWS
                return
        if self._rest:
            self._rest -= 1
            return
        step = min(max(self.limit + self._direction, self._least), self._most)
        if step == self.limit:
            self._direction, self._rest = -self._direction, self.REST_WINDOWS
            return
        self._before, self.limit = (self.limit, rate), step
