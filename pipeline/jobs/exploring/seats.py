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
    without_room: bool = False
    """No machine had room for it: nobody joins it for a while, as long as there are others."""
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
        self._reopening: set[asyncio.Task[None]] = set()

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
        placed = [explorer for explorer in self.explorers if not explorer.without_room]
        return [explorer for explorer in placed or self.explorers if not explorer.reserved]

    def others_work(self, explorer: Explorer) -> bool:
        """Whether another explorer has been started, so that nobody needs to wait for this one."""
        return any(other.actor is not None for other in self.explorers if other is not explorer)

    def avoid(self, explorer: Explorer, seconds: float) -> None:
        """Let nobody join an explorer that no machine has room for; for so long, then it may be tried again."""

        async def reopen() -> None:
            await asyncio.sleep(seconds)
            async with self._changed:
                explorer.without_room = False
                self._changed.notify_all()

        explorer.without_room = True
        reopening = asyncio.create_task(reopen())
        self._reopening.add(reopening)
        reopening.add_done_callback(self._reopening.discard)

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
