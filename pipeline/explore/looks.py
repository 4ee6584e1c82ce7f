"""What did every state look like? Looks and captures of what was seen, whether it becomes part of the map or not."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from playwright.async_api import Error as PlaywrightError

from pipeline.browser.session import Capture
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.capture import BlobSink
from pipeline.explore.journal import Journal
from pipeline.explore.journal_records import Blobs
from pipeline.explore.loads import TakeCapture
from pipeline.explore.secrets import Redactor
from waygraph.errors import BrowserFailure

log = logging.getLogger(__name__)


class Looks:
    """Keeps the first look at everything that is seen, and captures it once.

    Parameters
    ----------
    journal : where looks are kept, so that they survive the process and need no memory.
    blobs : where screenshots, DOMs and accessibility snapshots go.
    captured : content hashes of what an earlier process captured already, by state.
    redactor : takes secrets out of what is kept.
    """

    def __init__(
        self,
        journal: Journal,
        blobs: BlobSink,
        counters: Counter[str],
        captured: Mapping[str, Blobs],
        redactor: Redactor,
    ) -> None:
        self._redactor = redactor
        self._journal = journal
        self._sink = blobs
        self._counters = counters
        self.captured = dict(captured)
        self._running: dict[str, asyncio.Task[None]] = {}

    async def see(self, snapshot: Snapshot, take: TakeCapture, *, capture: bool = True) -> None:
        """Keep a look, and capture what it shows while the page still shows it, unless that was done before."""
        await self._journal.add_look(snapshot)
        if not capture:
            return
        while (running := self._running.get(snapshot.id)) is not None:
            # Another worker is at it; when it fails, one of those that wait still has the page.
            await asyncio.wait([running])
        if snapshot.id in self.captured:
            return
        task = self._running[snapshot.id] = asyncio.ensure_future(self._capture(snapshot.id, take))
        try:
            await task
        except (BrowserFailure, PlaywrightError) as error:
            self._counters["capture/failed"] += 1
            log.warning("capture/failed %s: %s", snapshot.url, error)
        finally:
            del self._running[snapshot.id]

    async def _capture(self, node_id: str, take: TakeCapture) -> None:
        shown: Capture = await take()
        texts = (
            text.encode(errors="replace")
            for text in (self._redactor.dom(shown.dom), self._redactor.document(shown.aria))
        )
        first, second, third = [
            await asyncio.to_thread(self._sink.put, content) for content in (shown.screenshot, *texts)
        ]
        self.captured[node_id] = blobs = (first, second, third)
        await self._journal.record_capture(node_id, blobs)

    def get(self, node_id: str) -> Snapshot:
        """The first look at a state (`NotFound` when there is none)."""
        return self._journal.look(node_id)
