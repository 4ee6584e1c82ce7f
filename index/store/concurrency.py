"""How are many requests under way at once, and never too many?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

#: Requests to a disk or an object store that one call has under way.
AT_ONCE = 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def concurrently(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """`function` of every item, in their order, `AT_ONCE` at a time in threads. At most twice as many are ahead.

    The first exception is raised where its result would be; nothing new is begun after it.

    >>> list(concurrently(str.upper, "abc"))
    ['A', 'B', 'C']
    """
    ahead: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="store") as pool:
        try:
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) >= 2 * AT_ONCE:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
