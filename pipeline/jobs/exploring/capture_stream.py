"""How do states get to the encoders while their site is still explored? One by one, as references, with a patience."""

from __future__ import annotations

import asyncio
import logging
import time

from ray.exceptions import RayError

from index.graph import Observation
from pipeline.jobs.actors import Actor
from waygraph.errors import WaygraphError

log = logging.getLogger(__name__)

#: Of the time that a site may take, what it may wait for encoders that are slower than exploring.
_WAITING_SHARE = 0.25


class Stream:
    """Hands the states of one site over as they are found. What it does not hand over is encoded when the site is done.

    Parameters
    ----------
    publisher : who takes them.
    site : key of the site.
    site_seconds : time that exploring it may take.

    """

    def __init__(self, publisher: Actor, site: str, site_seconds: float) -> None:
        self._publisher = publisher
        self._site = site
        self._patience = _WAITING_SHARE * site_seconds
        self._open = True
        self.waited_seconds = 0.0

    async def __call__(self, observation: Observation) -> None:
        """Hand a state over; waits while the line before the encoders is full."""
        if not self._open:
            return
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self._patience - self.waited_seconds)):
                self._open = await self._publisher.offer.remote(self._site, observation) and self._open
        except TimeoutError:
            self._close("encoders are too slow to be waited for")
        except (RayError, WaygraphError) as error:
            self._close(f"{type(error).__name__}: {error}")
        finally:
            self.waited_seconds += time.monotonic() - began

    def _close(self, why: str) -> None:
        if self._open:
            log.warning("stream/closed %s: %s", self._site, why)
        self._open = False
