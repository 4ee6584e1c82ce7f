"""What did every state look like? Looks and captures of what was seen, whether it becomes part of the map or not."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Protocol

from playwright.async_api import Error as PlaywrightError

from pipeline.browser.session import Capture
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.capture import BlobSink
from pipeline.explore.loads import TakeCapture
from waygraph.errors import BrowserFailure

log = logging.getLogger(__name__)

#: Content hashes of a state's screenshot, DOM and accessibility snapshot.
Blobs = tuple[str, str, str]


class LookStore(Protocol):
    """Where looks and captures are kept, so that they survive the process and need no memory."""

    async def add_look(self, snapshot: Snapshot) -> None:
        """Keep a look under its id; the first one counts."""
        ...

    def look(self, node_id: str) -> Snapshot:
        """A look that was kept (KeyError when there is none)."""
        ...

    async def record_capture(self, node_id: str, blobs: Blobs) -> None:
        """Keep the content hashes of a state's captures."""
        ...


class Looks:
    """Keeps the first look at everything that is seen, and captures it once.

    Parameters
    ----------
    store : where looks are kept.
    blobs : where screenshots, DOMs and accessibility snapshots go.
    captured : what an earlier run captured already.
    """

    def __init__(self, store: LookStore, blobs: BlobSink, counters: Counter[str], captured: dict[str, Blobs]) -> None:
        self._store = store
        self._sink = blobs
        self._counters = counters
        self.captured = captured
        self._seen: set[str] = set(captured)
        self._running: dict[str, asyncio.Task[None]] = {}

    async def see(self, snapshot: Snapshot, take: TakeCapture, *, capture: bool = True) -> None:
        """Keep a look, and capture what it shows while the page still shows it, unless that was done before."""
        if snapshot.id not in self._seen:
            self._seen.add(snapshot.id)
            await self._store.add_look(snapshot)
        if not capture:
            return
        running = self._running.get(snapshot.id)
        if running is not None:
            # Another worker is at it; when it fails, this one still has the page.
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
        texts = (text.encode(errors="replace") for text in (shown.dom, shown.aria))
        first, second, third = [
            await asyncio.to_thread(self._sink.put, content) for content in (shown.screenshot, *texts)
        ]
        self.captured[node_id] = blobs = (first, second, third)
        await self._store.record_capture(node_id, blobs)

    def get(self, node_id: str) -> Snapshot:
        """The look at a state (KeyError when it was never seen)."""
        return self._store.look(node_id)


class MemoryLooks:
    """A `LookStore` that lives as long as the process."""

    def __init__(self) -> None:
        self._looks: dict[str, Snapshot] = {}

    async def add_look(self, snapshot: Snapshot) -> None:
        """See `LookStore`."""
        self._looks.setdefault(snapshot.id, snapshot)

    def look(self, node_id: str) -> Snapshot:
        """See `LookStore`."""
        return self._looks[node_id]

    async def record_capture(self, node_id: str, blobs: Blobs) -> None:
        """See `LookStore`: `Looks` itself remembers them."""
