"""What a day shows from outside: versions that were published, and how soon a change of a site is found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx

from bench.day.sites import ChangingSite, Edition
from waygraph.core.errors import WaygraphError
from waygraph.core.urls import site_key
from waygraph.index.store import Store

_INTERVAL_S = 1.0


class Repeated:
    """A function that is called every second, for the time of a block.

    Parameters
    ----------
    call
        The function.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(_INTERVAL_S):
            self._call()


class Versions:
    """Versions that a store had at any time.

    Parameters
    ----------
    location
        The store.
    """

    def __init__(self, location: str) -> None:
        self.seen: dict[str, set[int]] = {}
        self._location = location

    def look(self) -> None:
        """Look at the store."""
        # While the disk is full, or a version is swapped, a look may fail; the next one sees what is there.
        with suppress(WaygraphError):
            store = Store.open(self._location)
            for site in store.sites():
                self.seen.setdefault(site, set()).update(store.versions(site))

    def lost(self) -> dict[str, list[int]]:
        """Return the versions that were published and are not there."""
        store = Store.open(self._location)
        there = {site: set(store.versions(site)) for site in store.sites()}
        return {site: sorted(gone) for site, seen in self.seen.items() if (gone := seen - there.get(site, set()))}


@dataclass
class Change:
    """An edition that a site published, at a time of `time.monotonic`, and how long it took until a search found it."""

    site: str
    edition: Edition
    at: float
    found_after_s: float | None = None


@dataclass
class Freshness:
    """Publishes editions, and searches for them until the service finds them."""

    url: str
    headers: Mapping[str, str]
    sites: Sequence[ChangingSite]
    changes: list[Change] = field(default_factory=list)

    def change(self) -> None:
        """Let every site publish an edition, unless its last one was not found yet."""
        waiting = {change.site for change in self.changes if change.found_after_s is None}
        for site in self.sites:
            if site_key(site.url) not in waiting:
                self.changes.append(Change(site_key(site.url), site.publish(), time.monotonic()))

    def look(self) -> None:
        """Search for the editions that were not found yet."""
        with httpx.Client(base_url=self.url, headers=self.headers, trust_env=False, timeout=10) as http:
            for change in [each for each in self.changes if each.found_after_s is None]:
                with suppress(httpx.TransportError):
                    body = {"query": f"everything about the {change.edition.words}", "visited_only": True}
                    answer = http.post(f"/v1/sites/{change.site}/search", json=body)
                    if answer.is_success and any(
                        hit["url"].endswith(change.edition.path) for hit in answer.json()["hits"]
                    ):
                        change.found_after_s = time.monotonic() - change.at
