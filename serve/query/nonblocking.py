"""Sections of code that must not block, because they run on the event loop and would delay every other request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MUST_NOT_BLOCK: ContextVar[bool] = ContextVar("must_not_block", default=False)


class WouldBlock(Exception):
    """A call that was expected to be short is about to block. It must be repeated in a thread."""


@contextmanager
def nonblocking() -> Iterator[None]:
    """Make `raise_if_nonblocking` raise inside the block."""
    token = _MUST_NOT_BLOCK.set(True)
    try:
        yield
    finally:
        _MUST_NOT_BLOCK.reset(token)


def raise_if_nonblocking() -> None:
    """Announce an operation that takes long; call it before the operation.

    Raises
    ------
    WouldBlock
        If the caller runs inside `nonblocking`.
    """
    if _MUST_NOT_BLOCK.get():
        raise WouldBlock
