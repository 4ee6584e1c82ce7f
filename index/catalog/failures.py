"""Sites whose map could not be opened, why, and when opening is tried again."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from waygraph.core.errors import StoreError

log = logging.getLogger(__name__)

#: Seconds for which a version that could not be opened is not read again. It may be repaired under its number.
RETRY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why the version of a site could not be opened; without a version, its `HEAD` could not be read."""

    version: int | None
    error: StoreError
    at: float


class OpeningFailures(Mapping[str, StoreError]):
    """The present failures by site. Thread-safe.

    Attributes
    ----------
    found
        By `StoreError.reason`, the number of failures so far; one that repeats counts once.
    """

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}
        self._lock = threading.Lock()
        self.found: Counter[str] = Counter()

    def __getitem__(self, site: str) -> StoreError:
        with self._lock:
            return self._failures[site].error

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._failures))

    def __len__(self) -> int:
        with self._lock:
            return len(self._failures)

    def by_reason(self) -> Counter[str]:
        """Return the number of sites by `StoreError.reason`."""
        with self._lock:
            return Counter(failure.error.reason for failure in self._failures.values())

    def record(self, site: str, version: int | None, error: StoreError) -> None:
        """Record that a version could not be opened, and log it unless the same is known."""
        with self._lock:
            known = self._failures.get(site)
            if known is not None and known.error is error:
                return
            self._failures[site] = _Failure(version, error, time.monotonic())
            is_new = known is None or known.error.message != error.message
            self.found[error.reason] += is_new
        if is_new:
            log.error("The map of '%s' cannot be opened; if it is open, the one before stays in use: %s", site, error)

    def raise_recent(self, site: str, version: int) -> None:
        """Raise the error of a version that could not be opened a moment ago, so that it is not read again."""
        with self._lock:
            known = self._failures.get(site)
        if known is not None and known.version == version and time.monotonic() - known.at < RETRY_SECONDS:
            raise known.error.with_traceback(None)

    def forget(self, site: str) -> None:
        """Forget the failure of a site: it was opened, or removed."""
        with self._lock:
            self._failures.pop(site, None)

    def forget_changed(self, heads: Mapping[str, int | StoreError], opened: Mapping[str, int]) -> None:
        """Forget the failures of sites that have another version by now, or are removed.

        Parameters
        ----------
        heads
            Current versions by site, or why they are unknown.
        opened
            Versions that are open.
        """
        with self._lock:
            for site, failure in list(self._failures.items()):
                head = heads.get(site)
                if isinstance(head, StoreError):
                    continue
                # A refresh decides about sites of which an older version is open.
                if head == opened[site] if site in opened else head is None or head != failure.version:
                    del self._failures[site]
