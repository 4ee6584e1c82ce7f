"""Which process explores a site? An actor that owns one browser at a time and maps one site per call."""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Protocol

from index.store import Store
from pipeline.explore.capture import BlobSink, ExploreProgress, SiteCapture
from pipeline.jobs.report import DepthRecord, Exploration, FailedItem
from waygraph.settings import Settings

#: Failures of a site that its report shows in full; the map's manifest holds all of them.
_SHOWN_FAILURES = 20
#: Progress is told at most this often.
_PROGRESS_SECONDS = 0.2
#: A question for progress is answered after this long even when there is none.
_PROGRESS_PATIENCE_SECONDS = 10.0


class Explore(Protocol):
    """What explores a site: `pipeline.explore.explore_site`, or its stand-in in a test of the jobs alone."""

    def __call__(
        self,
        start_url: str,
        *,
        settings: Settings,
        blobs: BlobSink,
        on_progress: Callable[[ExploreProgress], None],
        stop: asyncio.Event,
    ) -> Coroutine[object, object, SiteCapture]:
        """Explore one site until it is done or `stop` is set."""
        ...


class ExplorerActor:
    """Explores one site per call. Ray runs its methods in threads, so that it answers while it explores.

    None of them is async: then Ray would run all of them in one event loop, which a busy exploration holds up.
    """

    def __init__(self, settings: Settings, explore: str) -> None:
        self._settings = settings
        self._explore_name = explore
        self._changed = threading.Condition()
        self._progress: ExploreProgress | None = None
        self._count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def ready(self) -> int:
        """Check that this machine can reach the store and has the explorer; returns the process id.

        Raises
        ------
        StoreError
            When the store is not usable from here.

        """
        self._parts()
        return os.getpid()

    def _parts(self) -> tuple[Explore, BlobSink]:
        module, _, name = self._explore_name.partition(":")
        explore: Explore = getattr(importlib.import_module(module), name)
        return explore, Store.open(self._settings.store).blobs

    def explore(self, start_url: str) -> tuple[Exploration, SiteCapture]:
        """Explore a site: its account, and the capture, which Ray keeps as an object of its own."""
        self._tell(None)
        started = time.monotonic()
        explore, blobs = self._parts()
        with asyncio.Runner() as runner:
            self._loop, self._stop = runner.get_loop(), asyncio.Event()
            exploration = explore(
                start_url, settings=self._settings, blobs=blobs, on_progress=self._tell, stop=self._stop
            )
            try:
                capture = runner.run(exploration)
            finally:
                self._loop = None
        return _account(capture, time.monotonic() - started), capture

    def stop(self) -> None:
        """Ask a running exploration to end soon, browser included."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            loop.call_soon_threadsafe(stop.set)

    def _tell(self, progress: ExploreProgress | None) -> None:
        with self._changed:
            self._progress = progress
            self._count += 1
            self._changed.notify_all()

    def progress(self, seen: int) -> tuple[int, ExploreProgress | None]:
        """The newest progress and its number, as soon as that is not `seen`."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, _PROGRESS_PATIENCE_SECONDS)
            return self._count, self._progress


def _account(capture: SiteCapture, seconds: float) -> Exploration:
    report = capture.report
    inherited = Counter(edge.inherited for edge in capture.graph.edges)
    return Exploration(
        states=len(capture.graph),
        edges=inherited[False],
        inherited_edges=inherited[True],
        seconds=round(seconds, 3),
        partial=report.partial,
        stopped_by=report.stopped_by,
        depths=tuple(
            DepthRecord(
                depth=row.depth,
                states=row.states,
                activations=row.activations,
                seconds=round(row.seconds, 3),
                states_per_minute=round(row.states_per_minute, 1),
            )
            for row in report.depths
        ),
        counters=dict(report.counters),
        skipped=_by_reason(skip.reason for skip in report.skips),
        failed=_by_reason(failure.reason for failure in report.failures),
        failures=tuple(
            FailedItem(node_id=f.node_id, action=f.action, reason=f.reason) for f in report.failures[:_SHOWN_FAILURES]
        ),
    )


def _by_reason(reasons: Iterable[str]) -> dict[str, int]:
    return dict(Counter(reasons).most_common())
