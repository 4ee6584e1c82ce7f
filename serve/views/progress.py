"""Runs that are going on, as their coordinators write it to the store."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Collection
from datetime import UTC, datetime

from pydantic import ValidationError

from waygraph.core.errors import NotFound, WaygraphError
from waygraph.core.run_progress import PROGRESS_NAME, STALE_SECONDS, RunProgress
from waygraph.index.store import Store
from waygraph.serve.query.maps import Maps

log = logging.getLogger("ray.serve.waygraph")

#: Runs that are looked at, the newest of the store: older ones have most likely ended.
NEWEST_RUNS = 20
#: For how long an answer is given again, in seconds. Many pages may ask at once.
CACHED_SECONDS = 1.5
#: For how long a run that has ended, or has written nothing, is not looked at. It may be resumed under the same id.
IDLE_SECONDS = 10.0
_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


class RunsInProgress:
    """Progress of the runs that are going on. Thread-safe.

    Parameters
    ----------
    maps
        The maps, whose store has the runs.
    """

    def __init__(self, maps: Maps) -> None:
        self._maps = maps
        self._lock = threading.Lock()
        self._idle_until: dict[str, float] = {}
        self._read_at = float("-inf")
        self._known: list[RunProgress] = []

    def progress(self, sites: Collection[str] | None = None) -> list[RunProgress]:
        """Return the runs that are going on, the newest first.

        Parameters
        ----------
        sites
            Keys of the sites that the caller may know of; None: all. Runs without any of them are left out, and of
            others the numbers of sites.

        Returns
        -------
        list of RunProgress
            The runs.
        """
        if not self._maps.is_open:
            return []
        with self._lock:
            if time.monotonic() - self._read_at >= CACHED_SECONDS:
                self._known = self._read()
                self._read_at = time.monotonic()
            known = self._known
        return known if sites is None else _visible(known, sites)

    def _read(self) -> list[RunProgress]:
        store = self._maps.catalog.store
        newest = sorted(filter(_RUN_ID.fullmatch, store.runs()), reverse=True)[:NEWEST_RUNS]
        now = time.monotonic()
        self._idle_until = {run_id: until for run_id, until in self._idle_until.items() if until > now}
        found = []
        for run_id in newest:
            if run_id in self._idle_until:
                continue
            if (progress := _read_progress(store, run_id)) is not None:
                found.append(progress)
            else:
                self._idle_until[run_id] = now + IDLE_SECONDS
        return found


def _read_progress(store: Store, run_id: str) -> RunProgress | None:
    """Return the progress of a run; None if it does not go on."""
    try:
        progress = RunProgress.model_validate_json(store.read_run(run_id, PROGRESS_NAME))
    except NotFound:
        return None  # it has just begun, or an earlier version of waygraph made it
    except (ValidationError, WaygraphError) as error:
        log.warning("the progress of run %s cannot be read: %s", run_id, error)
        return None
    return None if progress.ended or _age_seconds(progress) > STALE_SECONDS else progress


def _visible(runs: Collection[RunProgress], sites: Collection[str]) -> list[RunProgress]:
    found = []
    for run in runs:
        active = [each for each in run.active if each.site in sites]
        if active:
            found.append(run.model_copy(update={"active": active, "sites": len(active), "done": {}}))
    return found


def _age_seconds(progress: RunProgress) -> float:
    try:
        written = datetime.fromisoformat(progress.updated)
    except ValueError:
        return float("inf")
    return (datetime.now(UTC) - written.astimezone(UTC)).total_seconds()
