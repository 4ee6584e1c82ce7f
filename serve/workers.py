"""Which thread does what blocks? Few of them, and only so many requests may wait for one.

Threads of the standard library: those of anyio end with the task that they were started from, which in a replica of Ray
Serve is one request, so that every request paid for a new thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from serve.lru import Lru
from serve.metrics import Metrics
from serve.waiting import WouldWait, without_waiting
from waygraph.errors import Overloaded

P = ParamSpec("P")
T = TypeVar("T")

#: Threads that read and search maps: each needs a CPU for a few milliseconds, and now and then waits for a disk.
AT_ONCE = 16
#: Threads that may wait long: for a language model.
LONG_AT_ONCE = 32
#: A call that takes less CPU time than this is made on the event loop: handing it to a thread and back takes more.
SHORT_SECONDS = 0.002
#: For remembering which calls were short.
_KINDS_BYTES = 1_000_000


class Workers:
    """Runs blocking calls in threads, so that the event loop goes on answering. Use it on one event loop.

    So many may wait for a thread; whoever comes then is told to come again, and loses no time by waiting in vain. Who
    is cancelled while waiting never gets a thread; a thread that is at work cannot be stopped, ends by itself, and its
    answer reaches nobody.

    Parameters
    ----------
    max_waiting : of each kind.

    """

    def __init__(self, max_waiting: int, metrics: Metrics) -> None:
        self._short = _Kind(AT_ONCE, max_waiting, metrics)
        self._long = _Kind(LONG_AT_ONCE, max_waiting, metrics)
        self._took: Lru[Hashable, float] = Lru(_KINDS_BYTES)

    @property
    def waiting(self) -> int:
        """Calls that wait for a thread."""
        return sum(max(0, kind.behind) for kind in (self._short, self._long))

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what reads or searches maps (Overloaded)."""
        return await self._short.run(partial(function, *args, **kwargs))

    async def run_maybe_here(self, kind: Hashable, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what may be short on the event loop if the last call of its kind was, else as `run` does (Overloaded).

        Parameters
        ----------
        kind : calls that take about equally long, and never wait, unless they tell `serve.waiting` before; None:
            nothing is known of this one.

        """
        work = partial(function, *args, **kwargs)
        if kind is None:
            return await self._short.run(work)

        def timed() -> T:
            began = time.thread_time()
            try:
                return work()
            finally:
                self._took.put(kind, time.thread_time() - began, 0)

        took = self._took.get(kind)
        if took is not None and took < SHORT_SECONDS:
            # Since `kind` was looked up, another thread may have let go of what made the call short.
            with suppress(WouldWait), without_waiting():
                return timed()
        return await self._short.run(timed)

    async def run_long(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what may ask others for an answer (Overloaded)."""
        return await self._long.run(partial(function, *args, **kwargs))

    def close(self) -> None:
        """End the threads; those at work end when that is done."""
        self._short.close()
        self._long.close()


class _Kind:
    """Threads of one kind, and who waits for one."""

    def __init__(self, at_once: int, max_waiting: int, metrics: Metrics) -> None:
        self._at_once = at_once
        self._max_waiting = max_waiting
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="work")
        self._under_way = 0

    @property
    def behind(self) -> int:
        """How many calls more than threads there are."""
        return self._under_way - self._at_once

    async def run(self, work: Callable[[], T]) -> T:
        if (waiting := self.behind) >= self._max_waiting:
            self._metrics.refused("thread")
            raise Overloaded(f"{waiting} requests are waiting already.", hint="Send it again a little later.")
        self._under_way += 1
        try:
            # With its context, so that what is traced there belongs to the request.
            return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
