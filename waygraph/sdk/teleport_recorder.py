"""Recording of a teleport as a file that the page of the service replays."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from playwright.async_api import Error as PlaywrightError

from waygraph.client.map_source import AsyncMapApi, ThreadedMapSource
from waygraph.core.errors import NotFound
from waygraph.core.replay_file import ReplayContents, ReplayFile, ReplayOutcome, ReplayPage, ReplayStep

if TYPE_CHECKING:
    from playwright.async_api import Page

    from waygraph.client.map_source import AsyncMapSource, MapSource
    from waygraph.sdk.teleport_result import TeleportResult, TeleportStep

log = logging.getLogger(__name__)

_JPEG_QUALITY = 60
#: Longest wait for a screenshot; a page that draws nothing in this time is recorded without one.
_SCREENSHOT_MS = 5_000


class TeleportRecorder:
    """Records what the page shows before a teleport and after each of its steps.

    Pass `on_step` to `waygraph.sdk.teleport.teleport`.

    Parameters
    ----------
    source
        The maps; a blocking source is called in threads.
    site
        Key of the site.
    target
        Node id of the target.

    Examples
    --------
    >>> async def walk_and_record(page, maps, site, target):
    ...     recorder = TeleportRecorder(maps, site, target)
    ...     await recorder.begin(page)
    ...     result = await teleport(page, maps, site, target, on_step=recorder.on_step)
    ...     return await recorder.finish(result)

    """

    def __init__(self, source: MapSource | AsyncMapSource, site: str, target: str) -> None:
        self._maps = source if isinstance(source, AsyncMapApi) else ThreadedMapSource(source)
        self._site = site
        self._target = target
        self._contents = ReplayContents()
        self._here = ReplayPage()
        self._mapped: dict[str, ReplayPage] = {}
        self._steps: list[ReplayStep] = []

    async def begin(self, page: Page) -> None:
        """Record the page on which the teleport starts."""
        self._here = await self._shown(page, "")

    async def on_step(self, step: TeleportStep, page: Page) -> None:
        """Record a step and the page after it."""
        before, self._here = self._here, await self._shown(page, step.seen_node_id)
        self._steps.append(
            ReplayStep(
                action=step.action,
                status="done" if step.agrees else "drifted" if step.seen_node_id else "failed",
                agrees=step.agrees,
                message=step.problem,
                ms=step.ms,
                before=before,
                expected=await self._expected(step.expected_node_id),
                after=self._here,
            )
        )

    async def finish(self, result: TeleportResult) -> ReplayFile:
        """Return the file.

        Parameters
        ----------
        result
            How the teleport ended.

        Returns
        -------
        ReplayFile
            The recorded steps and the end.
        """
        target = await self._expected(self._target)
        return self._contents.file(
            "teleport",
            title=target.title or target.url or self._target,
            site=self._site,
            facts={"to": target.url},
            outcome=ReplayOutcome(status=result.outcome, good=result.arrived, message=result.problem, url=result.url),
            steps=self._steps,
        )

    async def _shown(self, page: Page, node_id: str) -> ReplayPage:
        """Return the page as it is now. A page without a screenshot, such as a closed one, is recorded without it."""
        title, image = "", b""
        try:
            title = await page.title()
            image = await page.screenshot(type="jpeg", quality=_JPEG_QUALITY, scale="css", timeout=_SCREENSHOT_MS)
        except PlaywrightError as error:
            log.info("a page of the walk is recorded without a screenshot: %s", error)
        key = self._contents.add_image(image)
        return ReplayPage(node_id=node_id, url=page.url, title=title, screenshot=key)

    async def _expected(self, node_id: str) -> ReplayPage:
        """Return a state as the map knows it."""
        if node_id not in self._mapped:
            node = await self._maps.node(self._site, node_id)
            key = ""
            if node.screenshot is not None:
                try:
                    key = self._contents.add_image(await self._maps.screenshot(self._site, node_id))
                except NotFound:  # the map was replaced meanwhile
                    log.info("state %s of '%s' is recorded without a screenshot", node_id, self._site)
            self._mapped[node_id] = ReplayPage(node_id=node_id, url=node.url, title=node.title, screenshot=key)
        return self._mapped[node_id]
