"""Queues that take turns between callers, so that one who sends much delays itself and not the others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Generic, TypeVar

from waygraph.core.errors import Overloaded

T = TypeVar("T", bound=Hashable)

#: Who sent the request that is being answered: its API key, or its address. Work waits under this name.
CALLER: ContextVar[str] = ContextVar("caller", default="")


class CallerQueue(Generic[T]):
    """A queue of different items with a limit, shared by callers.

    Callers take turns, and items of one caller leave in their order. When the queue is full, the newest item of the
    caller that has most makes room for a caller that has less.

    Parameters
    ----------
    max_items
        Items that may wait.
    """

    def __init__(self, max_items: int) -> None:
        self._max_items = max_items
        #: By caller, the one whose turn is next first; no queue is empty.
        self._queues: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, item: T) -> T | None:
        """Add an item of the current caller.

        Parameters
        ----------
        item
            The item.

        Returns
        -------
        T | None
            The item that had to make room: another one, or `item` itself if it was not added. None: there was room.
        """
        caller = CALLER.get()
        displaced: T | None = None
        if self._length >= self._max_items:
            longest = max(self._queues, key=lambda each: len(self._queues[each]), default=caller)
            if len(self._queues.get(longest, ())) <= len(self._queues.get(caller, ())) + 1:
                return item
            displaced = next(reversed(self._queues[longest]))
            self._take(longest, displaced)
        self._queues.setdefault(caller, OrderedDict())[item] = None
        self._length += 1
        return displaced

    def pop(self) -> T:
        """Remove and return the first item of the caller whose turn it is; the queue must not be empty."""
        caller, items = next(iter(self._queues.items()))
        item = next(iter(items))
        self._take(caller, item)
        if caller in self._queues:
            self._queues.move_to_end(caller)
        return item

    def remove(self, item: T) -> None:
        """Remove an item, wherever it is in the queue; nothing happens if it is not in it."""
        for caller, items in self._queues.items():
            if item in items:
                self._take(caller, item)
                return

    def _take(self, caller: str, item: T) -> None:
        items = self._queues[caller]
        del items[item]
        self._length -= 1
        if not items:
            del self._queues[caller]


class CallerSlots:
    """A number of slots, for which callers wait by turns: `async with slots: ...`. Use it on one event loop.

    Parameters
    ----------
    slots
        Number of slots.
    max_waiting
        How many may wait; the others are refused with `Overloaded`.
    on_refused
        Called for each that is refused.
    """

    def __init__(self, slots: int, max_waiting: int, on_refused: Callable[[], None]) -> None:
        self._free = self._slots = slots
        self._queue: CallerQueue[asyncio.Future[None]] = CallerQueue(max_waiting)
        self._on_refused = on_refused

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._queue)

    @property
    def taken(self) -> int:
        """How many slots are taken."""
        return self._slots - self._free

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        displaced = self._queue.add(turn)
        if displaced is not None and not displaced.done():
            self._on_refused()
            displaced.set_exception(overloaded(self.waiting))
        try:
            await turn
        except asyncio.CancelledError:
            self._queue.remove(turn)
            if not turn.cancelled() and turn.exception() is None:  # it was its turn, and the caller has gone since
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        while self._queue:
            turn = self._queue.pop()
            if not turn.done():  # else its caller has gone
                turn.set_result(None)
                return
        self._free += 1


def overloaded(waiting: int) -> Overloaded:
    """Return the error of a request that found a queue full."""
    return Overloaded(f"{waiting} requests are waiting already.", hint="Send it again a little later.")
