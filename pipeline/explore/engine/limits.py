"""Limits that end a running exploration early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.records.stats import ExplorationStats
from waygraph.pipeline.explore.session.network_boundary import NetworkBoundary


class RunLimits:
    """Interruption, wall time, received bytes, and a host that is given up.

    A run that such a limit ends is partial: what it found depends on the speed of the machine.

    Parameters
    ----------
    site
        Key of the site.
    settings
        The limits.
    stats
        Where the reason of the end is recorded.
    pacer
        Knows whether the host is given up.
    boundary
        Counts received bytes.
    stop
        Set to interrupt the run.
    """

    def __init__(
        self,
        site: str,
        settings: ExploreSettings,
        stats: ExplorationStats,
        *,
        pacer: Pacer,
        boundary: NetworkBoundary,
        stop: asyncio.Event,
    ) -> None:
        self._site = site
        self._settings = settings
        self._stats = stats
        self._pacer = pacer
        self._boundary = boundary
        self._stop = stop

    def are_reached(self) -> bool:
        """Return whether the run must end, and record why."""
        if self._stop.is_set():
            self._stats.interrupt("interrupted")
        elif self._stats.seconds > self._settings.max_seconds:
            self._stats.interrupt("max_seconds")
        elif self._boundary.bytes_received > self._settings.max_bytes:
            self._stats.interrupt("max_bytes")
        elif self._pacer.has_given_up(self._site):
            self._stats.interrupt("turned_away")
        return self._stats.partial

    async def run(self, work: Awaitable[None]) -> None:
        """Await `work`, and cancel it when the run is interrupted, out of time, or the host is given up."""
        working = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stop.wait())
        given_up = asyncio.ensure_future(self._pacer.wait_until_given_up(self._site))
        left = self._settings.max_seconds - self._stats.seconds
        ends = {working, stopping, given_up}
        try:
            await asyncio.wait(ends, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            for each in ends:
                each.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        self.are_reached()
