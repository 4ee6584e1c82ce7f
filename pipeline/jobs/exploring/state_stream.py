"""Stream of states from an exploration to the encoders, with a limited waiting time."""

from __future__ import annotations

import asyncio
import logging
import time

from waygraph.core.errors import WaygraphError
from waygraph.index.graph import Observation
from waygraph.pipeline.jobs.actors.protocol import Actor, ActorError

log = logging.getLogger(__name__)

#: Share of a site's time limit that it may wait for encoders that are slower than exploring.
_WAITING_SHARE = 0.25


class StateStream:
    """Stream that passes states of one site to the publisher as they are found.

    States that are not passed on are encoded when the site is done.

    Parameters
    ----------
    publisher
        Handle of the publisher.
    site
        Key of the site.
    site_seconds
        Time limit of the exploration, in seconds.
    """

    def __init__(self, publisher: Actor, site: str, site_seconds: float) -> None:
        self._publisher = publisher
        self._site = site
        self._max_wait_seconds = _WAITING_SHARE * site_seconds
        self._open = True
        self.waited_seconds = 0.0

    async def __call__(self, observation: Observation) -> None:
        """Pass a state on. Waits while the encoder queue is full."""
        if not self._open:
            return
        started = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self._max_wait_seconds - self.waited_seconds)):
                self._open = await self._publisher.call("offer", self._site, observation) and self._open
        except TimeoutError:
            self._close("the encoders are too slow")
        except (ActorError, WaygraphError) as error:
            self._close(f"{type(error).__name__}: {error}")
        finally:
            self.waited_seconds += time.monotonic() - started

    def _close(self, reason: str) -> None:
        if self._open:
            log.warning("stream/closed %s: %s", self._site, reason)
        self._open = False
