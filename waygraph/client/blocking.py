"""Running asynchronous code that never suspends, without an event loop.

The client has one implementation of each operation, as a coroutine. Its blocking form runs the same coroutine with
functions that block instead of suspending. Such a coroutine ends in its first step, so blocking calls start no thread
and no event loop: Ctrl-C, timeouts and use from several threads work as in any blocking function.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_completion(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, and return its result.

    Parameters
    ----------
    coroutine
        The coroutine.

    Returns
    -------
    T
        Its result.

    Raises
    ------
    RuntimeError
        If the coroutine suspends.

    Examples
    --------
    >>> async def blocking_read():
    ...     return "content"
    >>> async def count_characters(read):
    ...     return len(await read())
    >>> run_to_completion(count_characters(blocking_read))
    7
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("A coroutine that must not suspend was suspended.")
