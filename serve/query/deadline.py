"""The time limit of a request, for calls in threads: cancelling a request does not end its thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


def with_deadline(work: Callable[[], T]) -> Callable[[], T]:
    """Return `work`, inside which `deadline` returns when the current task will be cancelled."""
    import anyio  # noqa: PLC0415 - loaded in the service, and not needed to read a store

    ends_at = anyio.current_effective_deadline()

    def run() -> T:
        token = _DEADLINE.set(ends_at)
        try:
            return work()
        finally:
            _DEADLINE.reset(token)

    return run


def deadline() -> float:
    """Return when the request is answered with an error, as `time.monotonic` counts; infinity outside of requests."""
    return _DEADLINE.get()
