"""Which process explores sites? An actor with one browser, in which many sites are explored at once.

Sites whose host must not be visited right now cost nothing but memory, so that a few busy pages serve many sites.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from index.graph import Observation, site_key
from index.store import Store
from pipeline.browser.launch import launch
from pipeline.browser.processes import adopt_orphans, machine_memory_bytes
from pipeline.browser.supervise import BrowserPool, Limits
from pipeline.explore.capture import BlobSink, ExploreProgress, SiteCapture
from pipeline.explore.pacing import Pacer, Slots
from pipeline.explore.slots import LEAST, PAGES_PER_CPU
from pipeline.jobs.actors import Actor, EndUnheard, end_with_ray
from pipeline.jobs.exploring.capture_stream import Stream
from pipeline.jobs.report.outcomes import DepthRecord, Exploration, FailedItem
from pipeline.jobs.sites.site_settings import settings_of
from pipeline.jobs.unfinished_work import drop_journal, journal_path
from waygraph.settings import Settings
from waygraph.spelling import spellable

#: Failures of a site that its report shows in full; the map's manifest holds all of them.
_SHOWN_FAILURES = 20
#: A question for progress is answered after this long even when there is none.
_PROGRESS_PATIENCE_SECONDS = 10.0
#: Of the machine's memory, what all its browsers together may take before they are recycled.
_MEMORY_SHARE = 0.5


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
        pool: BrowserPool,
        pacer: Pacer,
        slots: Slots,
        journal: Path,
        on_state: Callable[[Observation], Awaitable[None]],
    ) -> Coroutine[object, object, SiteCapture]:
        """Explore one site until it is done or `stop` is set; go on with what `journal` holds, if anything.

        `on_state` is told what each state of the map looks like as soon as it is one, and may hold exploring up.
        """
        ...


class _Explorations:
    """The explorations of a process, in an event loop of their own, with what they share.

    Parameters
    ----------
    share : the part of its machine that this process may use.

    """

    def __init__(self, settings: Settings, share: float) -> None:
        self._settings = settings
        self._share = share
        self._stops: set[asyncio.Event] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="explorations", daemon=True).start()

    def run(self, explore: Explore, start_url: str, **details: Any) -> SiteCapture:  # noqa: ANN401 - see `Explore`
        """Explore a site in the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(self._run(explore, start_url, **details), self._loop).result()

    async def _run(self, explore: Explore, start_url: str, **details: Any) -> SiteCapture:  # noqa: ANN401
        stop = asyncio.Event()
        self._stops.add(stop)
        try:
            return await explore(
                start_url,
                settings=settings_of(self._settings, site_key(start_url)),
                stop=stop,
                pool=self._pool,
                pacer=self._pacer,
                slots=self._slots,
                **details,
            )
        finally:
            self._stops.discard(stop)

    def stop(self) -> None:
        """Ask all of them to end soon."""

        def stop_all() -> None:
            for stop in self._stops:
                stop.set()

        self._loop.call_soon_threadsafe(stop_all)

    # Made when they are first used, in the loop that they are used in.

    @cached_property
    def _pool(self) -> BrowserPool:
        memory = int(_MEMORY_SHARE * self._share * machine_memory_bytes())
        return BrowserPool(partial(launch, self._settings.browser, guarded=True), limits=Limits(memory_bytes=memory))

    @cached_property
    def _pacer(self) -> Pacer:
        explore = self._settings.explore
        return Pacer(delay_seconds=explore.delay_seconds, max_delay_seconds=explore.max_delay_seconds)

    @cached_property
    def _slots(self) -> Slots:
        return Slots(max(LEAST, round(PAGES_PER_CPU * self._share * len(os.sched_getaffinity(0)))))


class ExplorerActor:
    """Explores sites, many at once, in one event loop with one browser.

    Ray runs the methods in threads, so that it answers while it explores. None of them may be async: then Ray would
    run all of them in one event loop, where `explore` would make the others wait.

    Parameters
    ----------
    explore : `module:function`, see `Explore`.
    share : the part of its machine that this process may use.
    unheard_seconds : it ends when nobody has asked for its progress for so long; None: it does not.

    """

    def __init__(self, settings: Settings, explore: str, share: float, unheard_seconds: float | None = None) -> None:
        self._settings = settings
        self._explore_name = explore
        self._end = EndUnheard(unheard_seconds) if unheard_seconds else None
        self._explorations = _Explorations(settings, share)
        self._changed = threading.Condition()
        self._progress: dict[str, tuple[int, ExploreProgress]] = {}
        self._count = 0
        self._told = 0.0
        adopt_orphans()
        end_with_ray()

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

    def explore(self, start_url: str, publisher: Actor) -> tuple[Exploration, SiteCapture]:
        """Explore a site: its account, and the capture, which Ray keeps as an object of its own.

        Meanwhile its states are handed to the publisher, for encoders that need not know the whole site.
        """
        started = time.monotonic()
        explore, blobs = self._parts()
        max_seconds = settings_of(self._settings, site_key(start_url)).explore.max_seconds
        stream = Stream(publisher, site_key(start_url), max_seconds)
        capture = self._explorations.run(
            explore,
            start_url,
            blobs=blobs,
            on_progress=partial(self._tell, start_url),
            journal=self._journal(start_url),
            on_state=stream,
        )
        return _account(capture, time.monotonic() - started, stream.waited_seconds), capture

    def published(self, start_url: str) -> None:
        """A site's map is published: what was kept to go on with its exploration is not needed any more."""
        drop_journal(self._journal(start_url))

    def _journal(self, start_url: str) -> Path:
        return journal_path(self._settings.store, site_key(start_url))

    def stop(self) -> None:
        """Ask all running explorations to end soon."""
        self._explorations.stop()

    def _tell(self, start_url: str, progress: ExploreProgress) -> None:
        with self._changed:
            self._count += 1
            self._progress[start_url] = self._count, progress
            self._changed.notify_all()

    def progress(self, seen: int, pause_seconds: float) -> tuple[int, Mapping[str, ExploreProgress]]:
        """The newest progress of each site (by start URL) since the number `seen`, and the number to ask with next.

        For one listener: what it has seen is forgotten, else every answer would go through all sites of the run.

        Parameters
        ----------
        pause_seconds : between two answers, at least.

        """
        if self._end is not None:
            self._end.heard()
        with self._changed:
            self._progress = {url: entry for url, entry in self._progress.items() if entry[0] > seen}
            # Whatever comes within the time is told together.
            self._changed.wait_for(lambda: False, max(0.0, self._told + pause_seconds - time.monotonic()))
            self._changed.wait_for(lambda: self._count != seen, _PROGRESS_PATIENCE_SECONDS)
            self._told = time.monotonic()
            return self._count, {url: told for url, (_, told) in self._progress.items()}


def _account(capture: SiteCapture, seconds: float, waited: float) -> Exploration:
    report = capture.report
    inherited = Counter(edge.inherited for edge in capture.graph.edges)
    return Exploration(
        site=capture.site,
        states=len(capture.graph),
        edges=inherited[False],
        inherited_edges=inherited[True],
        seconds=round(seconds, 3),
        waited_for_encoders=round(waited, 3),
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
        skipped={
            name.removeprefix("skip/"): count for name, count in report.counters.items() if name.startswith("skip/")
        },
        failed=_by_reason(spellable(failure.reason) for failure in report.failures),
        advice=tuple(map(spellable, report.advice)),
        failures=tuple(
            FailedItem(node_id=f.node_id, action=spellable(f.action), reason=spellable(f.reason))
            for f in report.failures[:_SHOWN_FAILURES]
        ),
    )


def _by_reason(reasons: Iterable[str]) -> dict[str, int]:
    return dict(Counter(reasons).most_common())
