"""Budget of one invocation of a run: states and seconds over all sites."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from waygraph.core.settings import JobSettings


class RunBudget:
    """Budget of one invocation of a run. A resumed run begins at zero.

    Only states that this invocation found are counted, not those of an exploration that it resumes.

    Parameters
    ----------
    settings
        The limits. 0: no limit.
    """

    def __init__(self, settings: JobSettings) -> None:
        self._max_states = settings.max_total_states
        self._deadline = time.monotonic() + settings.max_total_seconds if settings.max_total_seconds else None
        self._states_by_site: dict[str, int] = {}
        self._states_spent = asyncio.Event()
        self.states = 0

    def update(self, site: str, states: int, *, resumed: bool) -> None:
        """Record the number of states of a site.

        Parameters
        ----------
        site
            Key of the site.
        states
            Number of its states by now.
        resumed
            Whether an earlier invocation had begun the site. Then the first number is not counted.
        """
        known = self._states_by_site.setdefault(site, states if resumed else 0)
        self.states += max(0, states - known)
        self._states_by_site[site] = max(known, states)
        if self._max_states and self.states >= self._max_states:
            self._states_spent.set()

    def forget(self, site: str) -> None:
        """Forget a finished site."""
        self._states_by_site.pop(site, None)

    async def until_spent(self) -> Literal["max_total_states", "max_total_seconds"]:
        """Wait until a limit is reached and return its name. Without limits, wait for ever."""
        try:
            async with asyncio.timeout(None if self._deadline is None else max(0.0, self._deadline - time.monotonic())):
                await self._states_spent.wait()
        except TimeoutError:
            return "max_total_seconds"
        return "max_total_states"
