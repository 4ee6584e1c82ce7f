"""Which explorer takes which site? Each has seats for a number of sites; after an accident a site gets one for itself.

When an explorer dies, nobody knows which of its sites killed it. So each of them is tried again alone: the one that
kills its explorer then takes nobody with it, and the others lose no more than the way back to where they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pipeline.jobs.actors import Actor


@dataclass(eq=False, slots=True)
class Explorer:
    """A place for one explorer: who sits there now, and with how many sites."""

    actor: Actor | None = None
    """None before it was started, and after it died."""
    sites: int = 0
    reserved: bool = False
    """For one site alone."""
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)


class Seats:
    """Shares sites out among explorers, evenly.

    Parameters
    ----------
    explorers : how many there may be at once.
    each : sites that one of them explores at once.

    """

    def __init__(self, explorers: int, each: int) -> None:
        self.explorers = tuple(Explorer() for _ in range(explorers))
        self._each = each
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def take(self, *, alone: bool = False) -> AsyncIterator[Explorer]:
        """A seat at the explorer with the fewest sites; waits for one. `alone`: at one that has no other site."""
        explorer = await (self._reserve() if alone else self._join())
        try:
            yield explorer
        finally:
            async with self._changed:
                explorer.sites -= 1
                if alone:
                    explorer.reserved = False
                self._changed.notify_all()

    def _open(self) -> list[Explorer]:
        return [explorer for explorer in self.explorers if not explorer.reserved]

    async def _join(self) -> Explorer:
        async with self._changed:
            await self._changed.wait_for(lambda: any(explorer.sites < self._each for explorer in self._open()))
            explorer = min(self._open(), key=lambda explorer: explorer.sites)
            explorer.sites += 1
            return explorer

    async def _reserve(self) -> Explorer:
        async with self._changed:
            await self._changed.wait_for(self._open)
            explorer = min(self._open(), key=lambda explorer: explorer.sites)
            explorer.reserved = True  # from now on nobody joins it, so that it becomes empty
            try:
                await self._changed.wait_for(lambda: not explorer.sites)
            except BaseException:
                explorer.reserved = False
                self._changed.notify_all()
                raise
            explorer.sites = 1
            return explorer
