"""The progress of a run in its folder in the store, for displays in other processes (`waygraph.core.run_progress`)."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from types import TracebackType
from typing import Self

from waygraph.core.errors import StoreError
from waygraph.core.run_progress import MAX_ACTIVE_SITES, PROGRESS_NAME, ActiveSite, RunProgress
from waygraph.pipeline.jobs.events import (
    JobEvent,
    SiteAttemptFailed,
    SiteEncoding,
    SiteFinished,
    SitePhase,
    SiteProgress,
    SiteTurnEnded,
)
from waygraph.pipeline.jobs.run.run_state import RunState

log = logging.getLogger(__name__)

#: Least time between two writes, and longest time without one, in seconds.
_LEAST_SECONDS, _MOST_SECONDS = 3.0, 30.0


class ProgressFile:
    """Writes the progress of a run while the block lasts, in a thread of its own, and that the run ended after it.

    A write that fails is logged: the run does not depend on it.

    Parameters
    ----------
    run_state
        State of the run, whose events are followed.
    """

    def __init__(self, run_state: RunState) -> None:
        self._run_state = run_state
        self._lock = threading.Lock()
        self._done = Counter(site.status for site in run_state.sites if site.status is not None)
        self._active: dict[str, ActiveSite] = {}
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_until_closed, name="progress", daemon=True)
        run_state.subscribe(self)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._changed.set()
        self._thread.join()
        self._write(ended=True)

    def __call__(self, event: JobEvent) -> None:
        """Follow an event."""
        with self._lock:
            self._follow(event)
        self._changed.set()

    def _follow(self, event: JobEvent) -> None:
        match event:
            case SitePhase(site=site, phase=phase, attempt=attempt):
                known = self._active.get(site)
                if known is not None and known.attempt == attempt:
                    self._update(site, phase=phase)
                else:
                    self._active[site] = ActiveSite(site=site, phase=phase, since=_now(), attempt=attempt)
            case SiteProgress(site=site, progress=found):
                self._update(site, states=found.states, edges=found.edges, pending=found.pending, failed=found.failed)
            case SiteEncoding(site=site, done=done, states=states):
                self._update(site, states=done, pending=states - done)
            case SiteAttemptFailed(site=site):
                self._active.pop(site, None)
            case SiteTurnEnded(outcome=outcome):
                self._active.pop(outcome.site, None)
            case SiteFinished(outcome=outcome):
                self._active.pop(outcome.site, None)
                self._done[outcome.status] += 1

    def _update(self, site: str, **values: int | str) -> None:
        if (known := self._active.get(site)) is not None:
            self._active[site] = known.model_copy(update=values)

    def progress(self, *, ended: bool = False) -> RunProgress:
        """Return the progress now."""
        with self._lock:
            return RunProgress(
                run_id=self._run_state.run_id,
                work=self._run_state.work,
                updated=_now(),
                ended=ended,
                sites=len(self._run_state.sites),
                done=dict(self._done),
                active=list(islice(self._active.values(), MAX_ACTIVE_SITES)),
            )

    def _write_until_closed(self) -> None:
        while not self._closing.is_set():
            self._changed.clear()
            self._write()
            if not self._closing.wait(_LEAST_SECONDS):
                self._changed.wait(_MOST_SECONDS)

    def _write(self, *, ended: bool = False) -> None:
        try:
            self._run_state.write_file(PROGRESS_NAME, self.progress(ended=ended).model_dump_json().encode())
        except StoreError as error:
            log.warning("run/progress_not_written %s: %s", self._run_state.run_id, error.message)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
