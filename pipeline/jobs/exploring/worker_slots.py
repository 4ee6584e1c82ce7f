"""Worker slots: which explorer takes which site.

Each explorer has slots for several sites. When an explorer dies, it is unknown which of its sites killed it, so each of
them is retried alone in an explorer: the site that kills its explorer then affects no other site.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from waygraph.pipeline.jobs.actors.protocol import Actor


@dataclass(eq=False, slots=True)
class ExplorerSlot:
    """The slots of one explorer: the current actor and the number of its sites."""

    actor: Actor | None = None
    """None before its start and after its death."""
    sites: int = 0
    reserved: bool = False
    """Whether one site has it alone."""
    without_room: bool = False
    """Whether no machine had room for it. Sites avoid it for a while if there are other explorers."""
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)


class WorkerSlots:
    """Slots of all explorers. Sites are distributed evenly among them.

    Parameters
    ----------
    explorers
        Maximal number of explorers.
    sites_each
        Maximal number of sites that one explorer explores at once.
    """

    def __init__(self, explorers: int, sites_each: int) -> None:
        self.explorers = tuple(ExplorerSlot() for _ in range(explorers))
        self._sites_each = sites_each
        self._changed = asyncio.Condition()
        self._reopening: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def take(self, *, alone: bool = False) -> AsyncIterator[ExplorerSlot]:
        """Wait for a slot of the explorer with the fewest sites, with `alone` of one without other sites."""
        explorer = await (self._reserve() if alone else self._join())
        try:
            yield explorer
        finally:
            async with self._changed:
                explorer.sites -= 1
                if alone:
                    explorer.reserved = False
                self._changed.notify_all()

    def _open(self) -> list[ExplorerSlot]:
        placed = [explorer for explorer in self.explorers if not explorer.without_room]
        return [explorer for explorer in placed or self.explorers if not explorer.reserved]

    def others_work(self, explorer: ExplorerSlot) -> bool:
        """Return whether another explorer is started, so that sites need not wait for this one."""
        return any(other.actor is not None for other in self.explorers if other is not explorer)

    def avoid(self, explorer: ExplorerSlot, seconds: float) -> None:
        """Give an explorer no sites for some time, since no machine has room for it."""

        async def reopen() -> None:
            await asyncio.sleep(seconds)
            async with self._changed:
                explorer.without_room = False
                self._changed.notify_all()

        explorer.without_room = True
        reopening = asyncio.create_task(reopen())
        self._reopening.add(reopening)
        reopening.add_done_callback(self._reopening.discard)

    async def _join(self) -> ExplorerSlot:
        async with self._changed:
            await self._changed.wait_for(lambda: any(explorer.sites < self._sites_each for explorer in self._open()))
            explorer = min(self._open(), key=lambda explorer: explorer.sites)
            explorer.sites += 1
            return explorer

    async def _reserve(self) -> ExplorerSlot:
        async with self._changed:
            await self._changed.wait_for(self._open)
            explorer = min(self._open(), key=lambda explorer: explorer.sites)
            explorer.reserved = True  # no other site joins it from now on, so that it becomes empty
            try:
                await self._changed.wait_for(lambda: not explorer.sites)
            except BaseException:
                explorer.reserved = False
                self._changed.notify_all()
                raise
            explorer.sites = 1
            return explorer
