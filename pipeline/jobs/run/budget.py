"""When has a call of a run done enough? States found and seconds passed, over all sites together."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from waygraph.settings import JobSettings


class Budget:
    """Counts what one call of a run does. A run that is gone on with begins at zero again.

    Only states that this call found are counted: those that an unfinished exploration brings along are not.
    """

    def __init__(self, settings: JobSettings) -> None:
        self._most_states = settings.max_total_states
        self._until = time.monotonic() + settings.max_total_seconds if settings.max_total_seconds else None
        self._known: dict[str, int] = {}
        self._enough = asyncio.Event()
        self.states = 0

    def tell(self, site: str, states: int, *, resumed: bool) -> None:
        """A site has so many states by now.

        Parameters
        ----------
        resumed : an earlier call had begun with it: what is told first is what it had.

        """
        known = self._known.setdefault(site, states if resumed else 0)
        self.states += max(0, states - known)
        self._known[site] = max(known, states)
        if self._most_states and self.states >= self._most_states:
            self._enough.set()

    def forget(self, site: str) -> None:
        """A site is finished: nothing will be told of it any more."""
        self._known.pop(site, None)

    async def until_spent(self) -> Literal["max_total_states", "max_total_seconds"]:
        """Wait until a limit is reached, if there is one; which it was."""
        try:
            async with asyncio.timeout(None if self._until is None else max(0.0, self._until - time.monotonic())):
                await self._enough.wait()
        except TimeoutError:
            return "max_total_seconds"
        return "max_total_states"
