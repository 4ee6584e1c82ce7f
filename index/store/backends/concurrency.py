"""Concurrent requests to storage, with a bound on their number."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

#: Maximum number of concurrent requests to a disk or an object store per call.
MAX_CONCURRENT = 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def concurrent_map(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Call `function` for every item in threads, and yield the results in order.

    `MAX_CONCURRENT` calls run at a time, and at most twice as many results are ahead of the consumer. The first
    exception is raised at the position of its result; no call is started after it.

    >>> list(concurrent_map(str.upper, "abc"))
    ['A', 'B', 'C']
    """
    ahead: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(MAX_CONCURRENT, thread_name_prefix="store") as pool:
        try:
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) >= 2 * MAX_CONCURRENT:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
