"""What did every state look like? Looks and captures of what was seen, whether it becomes part of the map or not."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Mapping

from playwright.async_api import Error as PlaywrightError

from pipeline.browser.session import Capture
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.capture import BlobSink
from pipeline.explore.journal import Journal
from pipeline.explore.journal_codec import pack
from pipeline.explore.journal_records import Blobs
from pipeline.explore.loads import TakeCapture
from pipeline.explore.secrets import Redactor
from pipeline.explore.state import State
from waygraph.errors import BrowserFailure

log = logging.getLogger(__name__)


def look_key(seen: Snapshot) -> str:
    """The key that a look is kept by: its node id, and a hash of what an id does not see (texts, links, title).

    One URL can show two contents in the same elements, and which of them comes first in time is chance.
    """
    shown = (
        seen.title,
        seen.raw_url,
        [(segment.text, segment.role) for segment in seen.segments],
        [(c.action, c.tag, c.disabled, c.submits, c.download, c.method, c.handler, c.icon) for c in seen.candidates],
    )
    return f"{seen.id}.{hashlib.blake2b(pack(shown), digest_size=6).hexdigest()}"


class Looks:
    """Keeps a look at everything that is seen until it is known which look is a state's, and captures each once.

    Parameters
    ----------
    journal : where looks are kept, so that they survive the process and need no memory.
    blobs : where screenshots, DOMs and accessibility snapshots go.
    captured : content hashes of what an earlier process captured already, by key.
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
        self._captured = dict(captured)
        self._chosen: dict[str, str] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def see(self, snapshot: Snapshot, take: TakeCapture, *, capture: bool = True) -> str:
        """Keep a look, and capture what it shows while the page still shows it; returns the key that it is kept by.

        Another look at what is a state by now is not kept: that state's is chosen.
        """
        chosen = self._chosen.get(snapshot.id)
        if chosen is not None and (chosen in self._captured or not capture):
            return chosen
        key = look_key(snapshot)
        if chosen not in {None, key}:
            return chosen
        await self._journal.withhold(self._redactor.shown_in(snapshot))
        await self._journal.add_look(key, snapshot)
        if not capture:
            return key
        while (running := self._running.get(key)) is not None:
            # Another worker is at it; when it fails, one of those that wait still has the page.
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
        # At once: each is a round trip when the store is an object store.
        first, second, third = await asyncio.gather(
            *(asyncio.to_thread(self._sink.put, content) for content in (shown.screenshot, *texts))
        )
        self._captured[key] = blobs = (first, second, third)
        await self._journal.record_capture(key, blobs)

    async def adopt(self, key: str, snapshot: Snapshot, blobs: Blobs | None) -> None:
        """Keep a look that an earlier exploration had, under its key, with what that captured."""
        await self._journal.add_look(key, snapshot)
        if blobs is not None and key not in self._captured:
            self._captured[key] = blobs
            await self._journal.record_capture(key, blobs)

    def blobs(self, key: str) -> Blobs | None:
        """Content hashes of the captures of a look, by the key that `see` returned."""
        return self._captured.get(key)

    def seen(self, key: str) -> Snapshot:
        """A look, by the key that `see` returned."""
        return self._journal.look(key)

    def choose(self, state: State) -> None:
        """The look of a new state is this one, whatever else is seen under its id."""
        self._chosen[state.id] = state.look

    def get(self, node_id: str) -> Snapshot:
        """The look of a state (`KeyError` when it is none)."""
        return self._journal.look(self._chosen[node_id])

    def captured(self, node_id: str) -> Blobs | None:
        """Content hashes of a state's screenshot, DOM and accessibility snapshot; nothing when that failed."""
        return self._captured.get(self._chosen[node_id])
