"""Which thread does what blocks? Few of them, and only so many requests may wait for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

from serve.metrics import Metrics
from waygraph.errors import Overloaded

P = ParamSpec("P")
T = TypeVar("T")

#: Threads that read and search maps: each needs a CPU for a few milliseconds, and now and then waits for a disk.
AT_ONCE = 16
#: Threads that may wait long: for a language model.
LONG_AT_ONCE = 32


class Workers:
    """Runs blocking calls in threads, so that the event loop goes on answering.

    So many may wait for a thread; whoever comes then is told to come again, and loses no time by waiting in vain. Who
    is cancelled while waiting never gets a thread; a thread that is at work cannot be stopped, ends by itself, and its
    answer reaches nobody.

    Parameters
    ----------
    max_waiting : of each kind.

    """

    def __init__(self, max_waiting: int, metrics: Metrics) -> None:
        self._max_waiting = max_waiting
        self._metrics = metrics
        self._short = anyio.CapacityLimiter(AT_ONCE)
        self._long = anyio.CapacityLimiter(LONG_AT_ONCE)
        self._under_way = Counter[anyio.CapacityLimiter]()

    @property
    def waiting(self) -> int:
        """Calls that wait for a thread."""
        return sum(max(0, self._behind(limiter)) for limiter in (self._short, self._long))

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what reads or searches maps (Overloaded)."""
        return await self._run(self._short, partial(function, *args, **kwargs))

    async def run_long(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what may ask others for an answer (Overloaded)."""
        return await self._run(self._long, partial(function, *args, **kwargs))

    def _behind(self, limiter: anyio.CapacityLimiter) -> int:
        return self._under_way[limiter] - int(limiter.total_tokens)

    async def _run(self, limiter: anyio.CapacityLimiter, work: Callable[[], T]) -> T:
        if (waiting := self._behind(limiter)) >= self._max_waiting:
            self._metrics.refused("thread")
            raise Overloaded(f"{waiting} requests are waiting already.", hint="Send it again a little later.")
        # Counted here: a limiter knows only of those that got as far as waiting.
        self._under_way[limiter] += 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)
        finally:
            self._under_way[limiter] -= 1
