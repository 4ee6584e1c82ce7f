"""May what runs now wait? Not on the event loop, where everybody would wait with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MUST_NOT: ContextVar[bool] = ContextVar("must_not_wait", default=False)


class WouldWait(Exception):
    """What was thought to be short would take long now: it is to be done in a thread."""


@contextmanager
def without_waiting() -> Iterator[None]:
    """Whatever would wait in this block raises `WouldWait` instead."""
    before = _MUST_NOT.set(True)
    try:
        yield
    finally:
        _MUST_NOT.reset(before)


def about_to_wait() -> None:
    """To be called before something that takes long (WouldWait where that must not be)."""
    if _MUST_NOT.get():
        raise WouldWait
