"""The explorer actor: one browser, in which many sites are explored at once.

Sites that wait for their host's delay cost only memory, so a few busy pages serve many sites.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.index.graph import Observation
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserLimits, BrowserPool
from waygraph.pipeline.browser.process.process_tree import adopt_orphans, machine_memory_bytes
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import MIN_SLOTS, SLOTS_PER_CPU, Slots
from waygraph.pipeline.explore.records.capture import BlobSink, ExploreProgress, SiteCapture
from waygraph.pipeline.jobs.actors.process import PollWatchdog
from waygraph.pipeline.jobs.actors.protocol import Actor
from waygraph.pipeline.jobs.exploring.exploration_statistics import exploration_statistics
from waygraph.pipeline.jobs.exploring.state_stream import StateStream
from waygraph.pipeline.jobs.exploring.turn import Turn, TurnProgress
from waygraph.pipeline.jobs.report.outcomes import Exploration
from waygraph.pipeline.jobs.sites.site_settings import settings_for_site
from waygraph.pipeline.jobs.work_files import journal_path, remove_journal

#: A poll for progress is answered after this time even without progress.
_PROGRESS_PATIENCE_SECONDS = 10.0
#: Share of the machine's memory that all its browsers may use before they are recycled.
_MEMORY_SHARE = 0.5


class ExploreFunction(Protocol):
    """Function that explores a site: `waygraph.pipeline.explore.explore_site`, or a stand-in in tests."""

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
        """Explore one site until it is done or `stop` is set. Resume from `journal` if it has content.

        `on_state` is called with each new state of the map. Exploring waits for it.
        """
        ...


class _Explorations:
    """The explorations of a process, in a separate event loop, with shared browser pool, pacer and slots.

    Parameters
    ----------
    settings
        Settings of the run.
    share
        Share of its machine that this process may use.
    """

    def __init__(self, settings: Settings, share: float) -> None:
        self._settings = settings
        self._share = share
        self._stops: set[asyncio.Event] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="explorations", daemon=True).start()

    def run(
        self,
        explore: ExploreFunction,
        start_url: str,
        turn: Turn | None,
        on_progress: Callable[[ExploreProgress], None],
        **details: Any,  # noqa: ANN401 - see `ExploreFunction`
    ) -> SiteCapture:
        """Explore a site in the loop, until its turn ends if it has one, and wait for the result."""
        running = self._run(explore, start_url, turn, on_progress, **details)
        return asyncio.run_coroutine_threadsafe(running, self._loop).result()

    async def _run(
        self,
        explore: ExploreFunction,
        start_url: str,
        turn: Turn | None,
        on_progress: Callable[[ExploreProgress], None],
        **details: Any,  # noqa: ANN401
    ) -> SiteCapture:
        stop = asyncio.Event()
        turn_progress = TurnProgress(turn, stop)

        def report(progress: ExploreProgress) -> None:
            on_progress(progress)
            turn_progress.update(progress)

        self._stops.add(stop)
        try:
            capture = await explore(
                start_url,
                stop=stop,
                on_progress=report,
                pool=self._pool,
                pacer=self._pacer,
                slots=self._slots,
                **details,
            )
        finally:
            self._stops.discard(stop)
        return turn_progress.end(capture)

    def stop(self) -> None:
        """Ask all explorations to end."""

        def stop_all() -> None:
            for stop in self._stops:
                stop.set()

        self._loop.call_soon_threadsafe(stop_all)

    # Created on first use, in the loop that uses them.

    @cached_property
    def _pool(self) -> BrowserPool:
        memory = int(_MEMORY_SHARE * self._share * machine_memory_bytes())
        return BrowserPool(
            partial(launch, self._settings.browser, guarded=True), limits=BrowserLimits(memory_bytes=memory)
        )

    @cached_property
    def _pacer(self) -> Pacer:
        explore = self._settings.explore
        return Pacer(delay_seconds=explore.delay_seconds, max_delay_seconds=explore.max_delay_seconds)

    @cached_property
    def _slots(self) -> Slots:
        return Slots(max(MIN_SLOTS, round(SLOTS_PER_CPU * self._share * len(os.sched_getaffinity(0)))))


class ExplorerActor:
    """Actor that explores many sites at once, in one event loop with one browser.

    Its methods run in threads, so that it answers while it explores. No method may be async: Ray would then run all of
    them in one event loop, where `explore` blocks the others.

    Parameters
    ----------
    settings
        Settings of the run.
    explore
        `module:function`, see `ExploreFunction`.
    share
        Share of its machine that this process may use.
    max_poll_seconds
        The process ends when its progress was not polled for this time. None: never.
    """

    def __init__(self, settings: Settings, explore: str, share: float, max_poll_seconds: float | None = None) -> None:
        self._settings = settings
        self._explore_name = explore
        self._watchdog = PollWatchdog(max_poll_seconds) if max_poll_seconds else None
        self._explorations = _Explorations(settings, share)
        self._changed = threading.Condition()
        self._progress: dict[str, tuple[int, ExploreProgress]] = {}
        self._count = 0
        self._answered_at = 0.0
        adopt_orphans()

    def ready(self) -> int:
        """Check that this machine can reach the store and has the explorer.

        Returns
        -------
        int
            The process id.

        Raises
        ------
        StoreError
            If the store cannot be used from here.
        """
        self._explore_function()
        return os.getpid()

    def _explore_function(self) -> tuple[ExploreFunction, BlobSink]:
        module, _, name = self._explore_name.partition(":")
        explore: ExploreFunction = getattr(importlib.import_module(module), name)
        return explore, Store.open(self._settings.store).blobs

    def explore(self, start_url: str, publisher: Actor, turn: Turn | None = None) -> tuple[Exploration, SiteCapture]:
        """Explore a site.

        During the exploration, states are passed to the publisher for encoders that do not need the whole site.

        Parameters
        ----------
        start_url
            Where to start.
        publisher
            Handle of the publisher.
        turn
            Turn of the site. None: it is explored to its own limits.

        Returns
        -------
        tuple of Exploration and SiteCapture
            The statistics, and the capture, see `Actor.call_keeping`.
        """
        started = time.monotonic()
        explore, blobs = self._explore_function()
        site = site_key(start_url)
        settings = settings_for_site(self._settings, site)
        if turn is not None:
            settings = turn.settings(settings)
        stream = StateStream(publisher, site, settings.explore.max_seconds)
        capture = self._explorations.run(
            explore,
            start_url,
            turn,
            partial(self._record_progress, start_url),
            settings=settings,
            blobs=blobs,
            journal=self._journal(start_url),
            on_state=stream,
        )
        statistics = exploration_statistics(
            capture, seconds=time.monotonic() - started, waited_seconds=stream.waited_seconds
        )
        return statistics, capture

    def remove_journal(self, start_url: str) -> None:
        """Remove the journal of a published site."""
        remove_journal(self._journal(start_url))

    def _journal(self, start_url: str) -> Path:
        return journal_path(self._settings.store, site_key(start_url))

    def stop(self) -> None:
        """Ask all running explorations to end."""
        self._explorations.stop()

    def _record_progress(self, start_url: str, progress: ExploreProgress) -> None:
        with self._changed:
            self._count += 1
            self._progress[start_url] = self._count, progress
            self._changed.notify_all()

    def progress(self, version: int, pause_seconds: float) -> tuple[int, Mapping[str, ExploreProgress]]:
        """Return the progress of sites that changed since an earlier call. Long-polls until there is some.

        For a single caller: progress that it has received is discarded.

        Parameters
        ----------
        version
            The number that the previous call returned, or 0.
        pause_seconds
            Minimal time between two answers, in seconds.

        Returns
        -------
        tuple[int, Mapping[str, ExploreProgress]]
            The number to pass to the next call, and the latest progress by start URL.
        """
        if self._watchdog is not None:
            self._watchdog.polled()
        with self._changed:
            self._progress = {url: entry for url, entry in self._progress.items() if entry[0] > version}
            # Progress within this time is returned together.
            self._changed.wait_for(lambda: False, max(0.0, self._answered_at + pause_seconds - time.monotonic()))
            self._changed.wait_for(lambda: self._count != version, _PROGRESS_PATIENCE_SECONDS)
            self._answered_at = time.monotonic()
            return self._count, {url: progress for url, (_, progress) in self._progress.items()}
