"""Turn of a site: an exploration ends when it has found as many states as its turn allows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from waygraph.core.settings import Settings
from waygraph.pipeline.explore.records.capture import ExploreProgress, SiteCapture
from waygraph.pipeline.jobs.report.outcomes import TURN_ENDED

#: Time that is left to a site whose earlier turns took its whole time limit. The limit ends the exploration then.
_LEAST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a site.

    Attributes
    ----------
    states
        Number of new states after which the exploration ends. 0: no limit.
    seconds_before
        Duration of the earlier turns of this invocation, which count towards the time limit of the site.
    """

    states: int
    seconds_before: float = 0.0

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of the site with the time that is left to it."""
        left = max(_LEAST_SECONDS, settings.explore.max_seconds - self.seconds_before)
        return settings.model_copy(update={"explore": settings.explore.model_copy(update={"max_seconds": left})})


class TurnProgress:
    """Ends one exploration at the end of its turn. States that it resumes from are those of its first progress.

    Parameters
    ----------
    turn
        The turn. None: the exploration has no turn.
    stop
        Ends the exploration when it is set.
    """

    def __init__(self, turn: Turn | None, stop: asyncio.Event) -> None:
        self._turn = turn
        self._stop = stop
        self._first: int | None = None

    def update(self, progress: ExploreProgress) -> None:
        """Stop the exploration if it found the states of its turn."""
        if self._first is None:
            self._first = progress.states
        if self._turn is not None and 0 < self._turn.states <= progress.states - self._first:
            self._stop.set()

    def end(self, capture: SiteCapture) -> SiteCapture:
        """Return a capture with the end of the turn as its reason to be partial.

        This includes an exploration that was stopped because the budget is spent: it continues in the same way.
        """
        if self._turn is None or not (self._stop.is_set() and capture.report.partial):
            return capture
        return replace(capture, report=replace(capture.report, stopped_by=TURN_ENDED))
