"""Fair queue of sites: registrable domains take turns, and retried sites pause first.

A list may name a thousand hosts of one domain in a row, which are often one server. In the order of the list they would
occupy all worker slots. The next site is therefore one of the domain with the fewest sites in progress, and among those
of the domain whose last turn is longest ago. Within a domain the order of the list counts.

Sites that were put back with a rank come after all others, in the order of their ranks.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from waygraph.pipeline.explore.policies.scope import registrable_domain

_Site = TypeVar("_Site")


def fairness_domain(key: str) -> str:
    """Return the registrable domain of a site, else its host. Sites with the same one may share a server.

    >>> fairness_domain("shop.example.co.uk:8443"), fairness_domain("127.0.0.1:8000")
    ('example.co.uk', '127.0.0.1')
    """
    return registrable_domain(key) or urlsplit(f"//{key}").hostname or key


class FairQueue(Generic[_Site]):
    """Sites that wait for their turn. Operations take logarithmic time in the number of pausing sites.

    Parameters
    ----------
    sites
        Sites that are ready.
    domain
        Returns the domain of a site.
    clock
        Monotonic clock, in seconds.
    """

    def __init__(
        self,
        sites: Iterable[_Site],
        domain: Callable[[_Site], str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._domain = domain
        self._clock = clock
        self._ready: dict[str, deque[_Site]] = {}
        # Domains with ready sites, by the number of their sites in progress, in the order of their turns.
        self._levels: dict[int, OrderedDict[str, None]] = {}
        self._working: Counter[str] = Counter()
        self._pausing: list[tuple[float, int, _Site]] = []
        self._ranked: list[tuple[tuple[float, int], int, _Site]] = []
        self._expected: dict[_Site, tuple[float, int]] = {}
        self._count = 0
        self._changed = asyncio.Event()
        for site in sites:
            self._append(site)

    def put(self, site: _Site, *, pause_seconds: float = 0.0) -> None:
        """Add a site at the end, after a pause."""
        if pause_seconds > 0:
            self._count += 1  # breaks ties, so that sites are never compared
            heapq.heappush(self._pausing, (self._clock() + pause_seconds, self._count, site))
        else:
            self._append(site)
        self._changed.set()

    def put_back(self, site: _Site, rank: tuple[float, int]) -> None:
        """Add a site that is taken when no other site is ready. Of several the one with the least rank comes first."""
        self._expected.pop(site, None)
        self._count += 1  # as above
        heapq.heappush(self._ranked, (rank, self._count, site))
        self._changed.set()

    def expect(self, site: _Site, rank: tuple[float, int]) -> None:
        """Note that a site will be put back with a rank. Sites with greater ranks wait for it until then."""
        self._expected[site] = rank

    def forget(self, site: _Site) -> None:
        """Expect a site no more, if it was expected."""
        if self._expected.pop(site, None) is not None:
            self._changed.set()

    def next(self) -> _Site | None:
        """Return the next site, which is in progress until `release`. None if all wait or the queue is empty."""
        while self._pausing and self._pausing[0][0] <= self._clock():
            self._append(heapq.heappop(self._pausing)[2])
        if not self._levels:
            return self._next_ranked()
        level = min(self._levels)
        domain = next(iter(self._levels[level]))
        self._leave_level(domain, level)
        line = self._ready[domain]
        site = line.popleft()
        self._working[domain] += 1
        if line:
            self._enter_level(domain)
        else:
            del self._ready[domain]
        return site

    def _next_ranked(self) -> _Site | None:
        if not self._ranked or self._ranked[0][0] > min(self._expected.values(), default=self._ranked[0][0]):
            return None
        site = heapq.heappop(self._ranked)[2]
        self._working[self._domain(site)] += 1
        return site

    async def take(self) -> _Site:
        """Wait for the next site, possibly for ever."""
        while True:
            if (site := self.next()) is not None:
                return site
            self._changed.clear()
            until = self._pausing[0][0] - self._clock() if self._pausing else None
            try:
                async with asyncio.timeout(until):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def release(self, site: _Site) -> None:
        """Mark a site as no longer in progress."""
        domain = self._domain(site)
        level = self._working[domain]
        if level <= 1:
            del self._working[domain]
        else:
            self._working[domain] -= 1
        if domain in self._ready:
            self._leave_level(domain, level)
            self._enter_level(domain)

    def drain(self) -> Iterator[_Site]:
        """Remove and yield all sites."""
        while self._pausing:
            self._append(heapq.heappop(self._pausing)[2])
        while self._ready:
            _, line = self._ready.popitem()
            yield from line
        self._levels.clear()
        while self._ranked:
            yield heapq.heappop(self._ranked)[2]

    def _append(self, site: _Site) -> None:
        domain = self._domain(site)
        line = self._ready.get(domain)
        if line is None:
            self._ready[domain] = deque((site,))
            self._enter_level(domain)
        else:
            line.append(site)

    def _enter_level(self, domain: str) -> None:
        self._levels.setdefault(self._working[domain], OrderedDict())[domain] = None

    def _leave_level(self, domain: str, level: int) -> None:
        del self._levels[level][domain]
        if not self._levels[level]:
            del self._levels[level]
