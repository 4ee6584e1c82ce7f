"""Screenshots of an attempt: the window that each step was decided on, and the one at the end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from waygraph.pipeline.browser.page.failures import PageFailure

if TYPE_CHECKING:
    from pydantic import JsonValue

    from waygraph.agents.actions.session import AgentSession
    from waygraph.agents.observation.page_observation import PageObservation
    from waygraph.agents.run_record import AgentStep
    from waygraph.agents.runner.trace import TraceWriter

log = logging.getLogger(__name__)

#: Quality of the JPEGs. Texts stay legible; windows of the demo shop take 33 to 56 kB, half to two thirds of a PNG.
JPEG_QUALITY = 60


class TraceScreenshots:
    """Adds screenshots to a trace: one before the first step, and one after each.

    Parameters
    ----------
    session
        The session that the agent acts in.
    trace
        The trace.
    """

    def __init__(self, session: AgentSession, trace: TraceWriter) -> None:
        self._session = session
        self._trace = trace
        self.latest = ""
        """Name of the latest screenshot; empty: the page could not be captured."""
        #: Names by the numbers that a search gives its states in the details of steps. It returns to earlier states
        #: between steps, so that the latest screenshot is not of the state that the next step is decided on.
        self._of_state: dict[JsonValue, str] = {}

    async def begin(self) -> None:
        """Wait until the first page has settled, and capture it.

        Raises
        ------
        BrowserFailure
            If no page can be observed: the browser or the context is gone.
        """
        await self._session.observe()
        await self.capture()

    async def capture(self) -> None:
        """Capture the window of the current tab. A page that does not respond, or shows a dialog, has no screenshot."""
        try:
            image = await self._session.screenshot(jpeg_quality=JPEG_QUALITY)
        except PageFailure as failure:
            log.info("runner/no_screenshot %s", failure.message)
            self.latest = ""
        else:
            self.latest = self._trace.store_screenshot(image)

    async def write_step(self, step: AgentStep, observation: PageObservation) -> None:
        """Add a step with the window that it was decided on and the one that it led to; a `StepListener`."""
        state, result = step.details.get("node"), step.details.get("result")
        before = self.latest
        if state is not None:
            before = self._of_state.setdefault(state, "" if step.details.get("backtracks") else self.latest)
        await self.capture()
        if result is not None:
            self._of_state.setdefault(result, self.latest)
        await self._trace.write_step(step, observation, before, self.latest)
