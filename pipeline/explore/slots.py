"""How many pages may be busy at once? As many as finish the most work: found by measuring, not by counting cores."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from types import TracebackType
from typing import Self

log = logging.getLogger(__name__)

#: Busy pages per CPU to begin with: while one waits for its site, another one computes.
PAGES_PER_CPU = 1.5
#: Never fewer: one page alone leaves the machine idle whenever its site does not answer.
LEAST = 2


class Slots:
    """A number of slots for work that keeps the machine busy. Waiting for a host's turn needs none.

    Use it in one event loop.

    Parameters
    ----------
    limit : slots to begin with; None: `PAGES_PER_CPU` for every CPU that this process may use, at least `LEAST`.
    most : autoscaling goes no further; None: four per CPU. Equal to `limit`: no autoscaling.

    """

    def __init__(self, limit: int | None = None, *, most: int | None = None) -> None:
        cpus = len(os.sched_getaffinity(0))
        self.limit = max(LEAST, round(PAGES_PER_CPU * cpus)) if limit is None else max(1, limit)
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._climb = Climb(self.limit, least=min(LEAST, self.limit), most=max(self.limit, most or 4 * cpus))

    @property
    def busy(self) -> int:
        """Slots that are held."""
        return self._busy

    def lease(self, *, limit_seconds: float | None = None) -> Lease:
        """A claim to one slot, to be used with `async with`, once.

        Parameters
        ----------
        limit_seconds : held longer than this at a stretch, the slot is given to others: a page that hangs keeps none.

        """
        return Lease(self, limit_seconds)

    async def take(self) -> None:
        """Wait for a slot; first come, first served."""
        if self._busy < self.limit and not self._waiting:
            self._busy += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._waiting.remove(place)
            else:
                self.give_back()
            raise

    def give_back(self) -> None:
        """Let somebody else have a slot."""
        self._busy -= 1
        self._admit()

    def finished(self) -> None:
        """A piece of work is done; from their number per second follows how many slots there should be."""
        limit = self._climb.finished(asyncio.get_running_loop().time(), in_demand=bool(self._waiting))
        if limit != self.limit:
            log.info("slots/limit %d -> %d", self.limit, limit)
            self.limit = limit
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._busy < self.limit:
            place = self._waiting.popleft()
            if not place.done():
                self._busy += 1
                place.set_result(None)


class Lease:
    """One slot, held from entering to leaving, except while it is given back."""

    def __init__(self, slots: Slots, limit_seconds: float | None) -> None:
        self._slots = slots
        self._limit_seconds = limit_seconds
        self._timer: asyncio.TimerHandle | None = None
        self.held = False
        self.expired = False
        """The slot was taken away since it was held for too long."""

    async def take(self) -> None:
        """Hold a slot (again)."""
        if self.held:
            return
        await self._slots.take()
        if self._is_held():
            # The guard waits for the turn of a redirect beside the worker: whoever came first holds the slot for both.
            self._slots.give_back()
            return
        self.held = True
        if self._limit_seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._limit_seconds, self._expire)

    def _is_held(self) -> bool:
        return self.held  # asked anew after something was awaited

    def give_back(self) -> None:
        """Let others have the slot, for instance while waiting for something that is not computing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.held:
            self.held = False
            self._slots.give_back()

    def _expire(self) -> None:
        log.warning("slots/expired: a page was busy for more than %.0f s", self._limit_seconds)
        self.expired = True
        self.give_back()

    async def __aenter__(self) -> Self:
        await self.take()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()
        if kind is None:
            self._slots.finished()


class Climb:
    """Searches the number of slots that finishes the most per second: one step up or down, kept if it pays.

    Parameters
    ----------
    limit : where to begin; `least` and `most` are never passed.

    """

    #: A window ends after so much work and so many seconds: with less, chance would decide.
    WINDOW_ITEMS, WINDOW_S = 40, 15.0
    #: One slot more must finish so much more to be kept; a slot less may cost as much.
    WORTH = 0.05
    #: After a step that was taken back, so many windows pass before the next one.
    REST = 4

    def __init__(self, limit: int, *, least: int, most: int) -> None:
        self.limit = limit
        self._least, self._most = least, most
        self._direction = 1
        self._before: tuple[int, float] | None = None
        self._rest = 0
        self._began: float | None = None
        self._items = 0
        self._demanded = 0

    def finished(self, now: float, *, in_demand: bool) -> int:
        """One piece of work is done at `now` (seconds); returns how many slots there should be from now on.

        Parameters
        ----------
        in_demand : whether others wait for a slot; without demand the limit limits nothing, and is left as it is.

        """
        if self._began is None:
            self._began = now
            return self.limit
        self._items += 1
        self._demanded += in_demand
        seconds = now - self._began
        if self._items >= self.WINDOW_ITEMS and seconds >= self.WINDOW_S:
            limits_something = 2 * self._demanded > self._items
            self._end_window(self._items / seconds, limits_something=limits_something)
            self._began, self._items, self._demanded = now, 0, 0
        return self.limit

    def _end_window(self, rate: float, *, limits_something: bool) -> None:
        if not limits_something:
            self._before = None
            return
        if self._before is not None:
            limit, rate_before = self._before
            pays = (
                rate >= rate_before * (1 + self.WORTH) if self.limit > limit else rate * (1 + self.WORTH) >= rate_before
            )
            self._before = None
            if not pays:
                self.limit, self._direction, self._rest = limit, -self._direction, self.REST
                return
        if self._rest:
            self._rest -= 1
            return
        step = min(max(self.limit + self._direction, self._least), self._most)
        if step == self.limit:
            self._direction, self._rest = -self._direction, self.REST
            return
        self._before, self.limit = (self.limit, rate), step
