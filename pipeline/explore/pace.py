"""When may a worker keep the machine busy, and when may it ask a host for a document?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from index.graph import site_key
from pipeline.explore.pacing import Pacer, Turn
from pipeline.explore.slots import Lease, Slots


class Pace:
    """One worker's slot, and its turns at hosts. Waiting for a turn holds no slot."""

    def __init__(self, pacer: Pacer, slots: Slots, *, item_seconds: float) -> None:
        self._pacer = pacer
        self._slots = slots
        self._item_seconds = item_seconds
        self._lease: Lease | None = None
        self._limit: asyncio.Timeout | None = None

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Hold a slot while the browser works; given away when that takes longer than an item may."""
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
    async def limited(self) -> AsyncIterator[None]:
        """Raise TimeoutError when the block takes longer than an item may; waiting for others does not count."""
        try:
            async with asyncio.timeout(self._item_seconds) as self._limit:
                yield
        finally:
            self._limit = None

    @contextmanager
    def _stopped_clock(self) -> Iterator[None]:
        limit, now = self._limit, asyncio.get_running_loop().time
        when = limit.when() if limit is not None else None
        if limit is None or when is None:
            yield
            return
        left = when - now()
        limit.reschedule(None)
        try:
            yield
        finally:
            if not limit.expired():
                limit.reschedule(now() + left)

    @asynccontextmanager
    async def idle(self) -> AsyncIterator[None]:
        """Let others have the slot while something is waited for that somebody else is at."""
        lease = self._lease
        if lease is None:
            yield
            return
        lease.give_back()
        with self._stopped_clock():
            try:
                yield
            finally:
                await lease.take()

    @asynccontextmanager
    async def turn(self, url: str) -> AsyncIterator[Turn]:
        """Wait until a document may be asked for at the host of `url`."""
        async with AsyncExitStack() as stack:
            with self._stopped_clock():
                turn = await stack.enter_async_context(self._pacer.turn(site_key(url), self._lease))
            yield turn

    def used(self, url: str) -> None:
        """A document was asked for at the host of `url`, under a turn that was over by then."""
        self._pacer.used(site_key(url))

    async def redirected(self, url: str) -> None:
        """Wait before a redirect to `url` is followed, under a turn that is not over."""
        with self._stopped_clock():
            await self._pacer.redirected(site_key(url), self._lease)

    async def before_action(self, url: str) -> None:
        """Wait before an action on a page of `url`, if such actions make requests."""
        with self._stopped_clock():
            await self._pacer.before_action(site_key(url), self._lease)

    def after_action(self, url: str, *, requested: bool) -> None:
        """Tell whether an action on a page of `url` made requests."""
        self._pacer.after_action(site_key(url), requested=requested)

    def answered(self, url: str, *, seconds: float, status: int, retry_after: str) -> bool:
        """Learn from an answer; returns whether the host asks to come again later."""
        return self._pacer.answered(site_key(url), seconds=seconds, status=status, retry_after=retry_after)

    def blocked(self, url: str, reason: str) -> int:
        """The host showed a block page: leave it alone for a while; returns how often in a row that was so."""
        self._pacer.cool_down(site_key(url), reason)
        return self._pacer.cool_downs(site_key(url))
