"""Store of snapshots and captures of everything that the explorer sees, whether it becomes part of the map or not."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Mapping

from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import BrowserFailure
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.session import Capture, TakeCapture
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.journal_codec import pack
from waygraph.pipeline.explore.checkpoint.journal_records import Blobs
from waygraph.pipeline.explore.records.capture import BlobSink
from waygraph.pipeline.explore.records.state import State
from waygraph.pipeline.explore.session.secrets import Redactor

log = logging.getLogger(__name__)


def snapshot_key(snapshot: Snapshot) -> str:
    """Return the key of a snapshot: its node id, and a hash of what the id does not cover (texts, links, title, tools).

    One URL can show two contents in the same elements, and it is chance which of them is seen first.
    """
    shown = (
        snapshot.title,
        snapshot.raw_url,
        [(segment.text, segment.role) for segment in snapshot.segments],
        [
            (c.action, c.tag, c.disabled, c.submits, c.download, c.method, c.handler, c.icon)
            for c in snapshot.candidates
        ],
        snapshot.tools,
    )
    return f"{snapshot.id}.{hashlib.blake2b(pack(shown), digest_size=6).hexdigest()}"


class SnapshotStore:
    """Store every snapshot until the snapshot of each state is chosen, and capture each page once.

    Parameters
    ----------
    journal
        Holds the snapshots, so that they survive the process and need no memory.
    blobs
        Where screenshots, DOMs and accessibility snapshots go.
    counters
        Counters, see docs/counters.md.
    captured
        Content hashes of captures of an earlier process, by key.
    redactor
        Removes secrets.
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
        self._captured = dict(captured)
        self._chosen: dict[str, str] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def save(self, snapshot: Snapshot, take: TakeCapture, *, capture: bool = True, as_shown: bool = False) -> str:
        """Store a snapshot, capture the page while it shows it, and return the key.

        If the snapshot's id is a state already, nothing is stored and the key of that state's snapshot is returned.

        Parameters
        ----------
        snapshot
            What the page shows.
        take
            Takes the capture.
        capture
            Whether to capture the page.
        as_shown
            Whether the snapshot is stored without a capture although its id is a state already.

        Returns
        -------
        str
            Key of the snapshot.
        """
        chosen = self._chosen.get(snapshot.id)
        if chosen is not None and as_shown:
            capture = False
        elif chosen is not None and (chosen in self._captured or not capture):
            return chosen
        key = snapshot_key(snapshot)
        if chosen not in {None, key} and not as_shown:
            return chosen
        await self._journal.withhold(self._redactor.secrets_in(snapshot))
        await self._journal.add_snapshot(key, snapshot)
        if not capture:
            return key
        while (running := self._running.get(key)) is not None:
            # Another worker captures it. If that fails, one of the waiting workers still has the page.
            await asyncio.wait([running])
        if key in self._captured:
            return key
        task = self._running[key] = asyncio.ensure_future(self._capture(key, take))
        try:
            await task
        except (BrowserFailure, PlaywrightError) as error:
            self._counters["capture/failed"] += 1
            log.warning("capture/failed %s: %s", snapshot.url, error)
        finally:
            del self._running[key]
        return key

    async def _capture(self, key: str, take: TakeCapture) -> None:
        shown: Capture = await take()
        texts = (
            text.encode(errors="replace")
            for text in (self._redactor.dom(shown.dom), self._redactor.document(shown.aria))
        )
        # Concurrently, since each is a round trip with an object store.
        first, second, third = await asyncio.gather(
            *(asyncio.to_thread(self._sink.put, content) for content in (shown.screenshot, *texts))
        )
        self._captured[key] = blobs = (first, second, third)
        await self._journal.record_capture(key, blobs)

    async def adopt(self, key: str, snapshot: Snapshot, blobs: Blobs | None) -> None:
        """Store a snapshot of an earlier exploration under its key, with its captures."""
        await self._journal.add_snapshot(key, snapshot)
        if blobs is not None and key not in self._captured:
            self._captured[key] = blobs
            await self._journal.record_capture(key, blobs)

    def blobs(self, key: str) -> Blobs | None:
        """Return the content hashes of the captures of a snapshot key, or None."""
        return self._captured.get(key)

    def read(self, key: str) -> Snapshot:
        """Return a snapshot by key."""
        return self._journal.snapshot(key)

    def choose(self, state: State) -> None:
        """Make the snapshot of a new state final. Later snapshots with the same id do not replace it."""
        self._chosen[state.id] = state.snapshot_key

    def get(self, node_id: str) -> Snapshot:
        """Return the snapshot of a state. Raise KeyError for an unknown id."""
        return self._journal.snapshot(self._chosen[node_id])

    def captured(self, node_id: str) -> Blobs | None:
        """Return the content hashes of a state's screenshot, DOM and accessibility snapshot, or None if that failed."""
        return self._captured.get(self._chosen[node_id])
