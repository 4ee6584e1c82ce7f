"""Threads for blocking calls, with a limit on the calls that wait for one.

The threads come from the standard library. Threads of anyio end with the task that started them, which in a replica of
Ray Serve is one request, so that every request paid for a new thread.
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

from waygraph.core.lru_cache import LruCache
from waygraph.serve.query.caller_queue import CallerSlots
from waygraph.serve.query.deadline import with_deadline
from waygraph.serve.query.nonblocking import WouldBlock, nonblocking
from waygraph.serve.telemetry.metrics import Metrics

P = ParamSpec("P")
T = TypeVar("T")

#: Threads that read and search maps. Each needs a CPU for a few milliseconds, and sometimes waits for a disk.
THREADS = 16
#: Threads for calls that may wait long, for a language model.
LONG_CALL_THREADS = 32
#: A call that takes less CPU time than this runs on the event loop: passing it to a thread and back takes longer.
SHORT_SECONDS = 0.002
#: Size of the cache of measured CPU times.
_TIMES_CACHE_BYTES = 1_000_000


class WorkerThreads:
    """Runs blocking calls in threads, so that the event loop stays responsive. Use it on one event loop.

    A limited number of calls may wait for a thread, and callers take turns. Further calls are refused at once with
    `Overloaded`, so that their callers lose no time. A call that is cancelled while it waits never runs. A call that
    runs cannot be stopped: its thread finishes it, and the result is dropped.

    Parameters
    ----------
    max_waiting
        Calls that may wait for each of the two thread pools.
    metrics
        Counts refused calls.
    """

    def __init__(self, max_waiting: int, metrics: Metrics) -> None:
        self._pool = _BoundedPool(THREADS, max_waiting, metrics)
        self._long_call_pool = _BoundedPool(LONG_CALL_THREADS, max_waiting, metrics)
        #: CPU time of the last call of each kind, in seconds.
        self._cpu_seconds: LruCache[Hashable, float] = LruCache(_TIMES_CACHE_BYTES)

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a thread."""
        return self._pool.waiting + self._long_call_pool.waiting

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that reads or searches maps.

        Parameters
        ----------
        function
            The call.
        *args
            Its positional arguments.
        **kwargs
            Its keyword arguments.

        Returns
        -------
        T
            Its result.

        Raises
        ------
        Overloaded
            If too many calls wait for a thread.
        """
        return await self._pool.run(partial(function, *args, **kwargs))

    async def run_inline_if_short(
        self, kind: Hashable, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a call on the event loop if the last call of its kind was short, else as `run` does.

        Parameters
        ----------
        kind
            Key of calls that take about equally long, and announce with `waygraph.serve.query.nonblocking` when they
            are about to block; None always runs the call in a thread.
        function
            The call.
        *args
            Its positional arguments.
        **kwargs
            Its keyword arguments.

        Returns
        -------
        T
            Its result.

        Raises
        ------
        Overloaded
            If the call needs a thread and too many calls wait for one.
        """
        work = partial(function, *args, **kwargs)
        if kind is None:
            return await self._pool.run(work)

        def timed() -> T:
            started = time.thread_time()
            try:
                return work()
            finally:
                self._cpu_seconds.put(kind, time.thread_time() - started, 0)

        cpu_seconds = self._cpu_seconds.get(kind)
        if cpu_seconds is not None and cpu_seconds < SHORT_SECONDS:
            # Another thread may have closed the map since the kind was computed; then the call would open it.
            with suppress(WouldBlock), nonblocking():
                return timed()
        return await self._pool.run(timed)

    async def run_long(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that may wait for another server, and should end before `waygraph.serve.query.deadline.deadline`.

        Parameters
        ----------
        function
            The call.
        *args
            Its positional arguments.
        **kwargs
            Its keyword arguments.

        Returns
        -------
        T
            Its result.

        Raises
        ------
        Overloaded
            If too many calls wait for a thread.
        """
        return await self._long_call_pool.run(with_deadline(partial(function, *args, **kwargs)))

    def close(self) -> None:
        """End the threads; those that run a call finish it first."""
        self._pool.close()
        self._long_call_pool.close()


class _BoundedPool:
    """A thread pool whose threads callers take by turns, with a limited queue.

    Parameters
    ----------
    threads
        Number of threads.
    max_waiting
        Calls that may wait for a thread.
    metrics
        Counts refused calls.
    """

    def __init__(self, threads: int, max_waiting: int, metrics: Metrics) -> None:
        self._slots = CallerSlots(threads, max_waiting, lambda: metrics.count_refused("thread"))
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="work")

    @property
    def waiting(self) -> int:
        return self._slots.waiting

    async def run(self, work: Callable[[], T]) -> T:
        async with self._slots:
            # The context carries the current span, so that spans of the thread belong to the request.
            return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
