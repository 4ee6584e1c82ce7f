"""Pace of one worker: its slot for using the browser, and its turns at hosts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from waygraph.core.urls import site_key
from waygraph.pipeline.explore.politeness.pacer import NavigationTurn, Pacer
from waygraph.pipeline.explore.politeness.slots import SlotLease, Slots


class Pace:
    """Slot and turns of one worker. Waiting for a turn holds no slot.

    Parameters
    ----------
    pacer
        Schedule of the requests to all hosts.
    slots
        Slots of all workers.
    item_seconds
        Time limit of a work item, in seconds. Waiting for other workers does not count.
    """

    def __init__(self, pacer: Pacer, slots: Slots, *, item_seconds: float) -> None:
        self._pacer = pacer
        self._slots = slots
        self._item_seconds = item_seconds
        self._lease: SlotLease | None = None
        self._timeout: asyncio.Timeout | None = None

    @asynccontextmanager
    async def hold_slot(self) -> AsyncIterator[None]:
        """Hold a slot while the browser works. It is released early if that exceeds the time limit of an item."""
        if self._lease is not None:
            yield
            return
        async with self._slots.lease(limit_seconds=self._item_seconds) as lease:
            self._lease = lease
            try:
                yield
            finally:
                self._lease = None

    @asynccontextmanager
    async def time_limit(self) -> AsyncIterator[None]:
        """Raise TimeoutError if the block exceeds the time limit of an item; waiting for others does not count."""
        try:
            async with asyncio.timeout(self._item_seconds) as self._timeout:
                yield
        finally:
            self._timeout = None

    @contextmanager
    def _paused_time_limit(self) -> Iterator[None]:
        timeout, now = self._timeout, asyncio.get_running_loop().time
        when = timeout.when() if timeout is not None else None
        if timeout is None or when is None:
            yield
            return
        left = when - now()
        timeout.reschedule(None)
        try:
            yield
        finally:
            if not timeout.expired():
                timeout.reschedule(now() + left)

    @asynccontextmanager
    async def release_slot(self) -> AsyncIterator[None]:
        """Release the slot inside the block, which waits for work of another worker."""
        lease = self._lease
        if lease is None:
            yield
            return
        lease.release()
        with self._paused_time_limit():
            try:
                yield
            finally:
                await lease.acquire()

    @asynccontextmanager
    async def turn(self, url: str) -> AsyncIterator[NavigationTurn]:
        """Wait until a document may be requested from the host of `url`."""
        async with AsyncExitStack() as stack:
            with self._paused_time_limit():
                turn = await stack.enter_async_context(self._pacer.turn(site_key(url), self._lease))
            yield turn

    def note_request(self, url: str) -> None:
        """Record that a document was requested from the host of `url`, in a turn that had ended by then."""
        self._pacer.note_request(site_key(url))

    async def wait_for_redirect(self, url: str) -> None:
        """Wait before a redirect to `url` is followed, in a turn that has not ended."""
        with self._paused_time_limit():
            await self._pacer.wait_for_redirect(site_key(url), self._lease)

    async def wait_for_action(self, url: str) -> None:
        """Wait before an action on a page of `url`, if such actions make requests."""
        with self._paused_time_limit():
            await self._pacer.wait_for_action(site_key(url), self._lease)

    def note_action(self, url: str, *, requested: bool) -> None:
        """Record whether an action on a page of `url` made requests."""
        self._pacer.note_action(site_key(url), requested=requested)

    def record_answer(self, url: str, *, seconds: float, status: int, retry_after: str) -> bool:
        """Adapt the delay of the host of `url` to an answer; return whether the host asks to come again later."""
        return self._pacer.record_answer(site_key(url), seconds=seconds, status=status, retry_after=retry_after)

    def record_block_page(self, url: str, reason: str, *, status: int, retry_after: str) -> None:
        """Start a cool-down of the host of `url`, which showed a block page."""
        self._pacer.record_block_page(site_key(url), url, reason, status=status, retry_after=retry_after)
