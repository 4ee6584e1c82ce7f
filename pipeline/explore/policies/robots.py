"""Policy for robots.txt: documents that a host forbids to robots are refused (`robots`). Switched off by `--no-robots`.

A host whose file was not read yet, or could not be read, is refused as well.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from waygraph.core.errors import RobotsForbidden, SiteUnreachable
from waygraph.core.urls import site_key
from waygraph.index.graph import PASSIVE_KINDS
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.policies.robots_file import TIMEOUT_S, RobotsFile
from waygraph.pipeline.explore.politeness.pacer import Pacer

log = logging.getLogger(__name__)

#: Time for which a file that was read stays valid, in seconds: a day (RFC 9309, section 2.4).
FRESH_S = 24 * 3_600.0
#: Time after which a file that could not be read is read again, in seconds.
RETRY_S = 300.0
#: Files that are read at once.
_CONCURRENT_READS = 8


@dataclass(frozen=True, slots=True)
class _CachedRobotsFile:
    """The robots.txt of a host.

    Attributes
    ----------
    url
        Root URL of the host.
    robots
        The file; None if it could not be read.
    until
        Time of the clock until which this is valid.
    """

    url: str
    robots: RobotsFile | None
    until: float


class RobotsPolicy:
    """Refusal by the robots.txt files of all hosts of a scope.

    Parameters
    ----------
    user_agent
        User agent of the browser.
    proxy
        HTTP proxy of the browser; empty for none.
    pacer
        Receives the delays that hosts ask for, and paces the loading of the files as it does visits.
    timeout_s
        Time limit for a file, in seconds.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        proxy: str = "",
        pacer: Pacer | None = None,
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._user_agent = user_agent
        self._proxy = proxy
        self._pacer = pacer
        self._timeout_s = timeout_s
        self._clock = clock
        self._files: dict[str, _CachedRobotsFile] = {}
        self._unread: dict[str, str] = {}
        self._reads = asyncio.Semaphore(_CONCURRENT_READS)

    async def start(self, url: str) -> None:
        """Read the file of the host of the start page.

        For other hosts, a file that cannot be read only refuses their pages.

        Parameters
        ----------
        url
            URL of the start page.

        Raises
        ------
        RobotsForbidden
            See `RobotsFile.fetch`.
        SiteUnreachable
            See `RobotsFile.fetch`.
        """
        self._store(url, await self._fetch(url), FRESH_S)

    async def prefetch(self, urls: Iterable[str] = ()) -> None:
        """Read the files of the hosts of `urls`, and of hosts that were refused because their file was not read.

        The URLs must be of the scope. Fresh files are not read again.
        """
        wanted = {site_key(url): url for url in urls if url.startswith(("http:", "https:"))} | self._unread
        self._unread = {}
        stale = {host: url for host, url in wanted.items() if not self._is_fresh(host)}
        await asyncio.gather(*(self._read(host, url) for host, url in stale.items()))

    def has_read(self, url: str) -> bool:
        """Return whether the file of the host of `url` was read."""
        return site_key(url) in self._files

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that the file of the host of `url` names, as far as it was read."""
        cached = self._files.get(site_key(url))
        return cached.robots.sitemaps if cached is not None and cached.robots is not None else ()

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:  # noqa: ARG002 - an ElementPolicy
        """Return why a link is not followed."""
        action = candidate.action
        is_link = action.kind not in PASSIVE_KINDS and action.target.startswith(("http:", "https:"))
        return self.refuse_url(action.target) if is_link else None

    def refuse_url(self, url: str) -> Refusal | None:
        """Return why a document is not loaded."""
        host = site_key(url)
        cached = self._files.get(host)
        if cached is None:
            self._unread[host] = url
            return Refusal("robots", f"the robots.txt of {host} was not read yet")
        if cached.robots is None:
            return Refusal("robots", f"the robots.txt of {host} could not be read")
        return cached.robots.refuse_url(url)

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> list[str]:
        """Return the hosts whose files a resumed run must read first; until then it would refuse their pages."""
        return sorted(cached.url for cached in self._files.values())

    async def load_checkpoint(self, checkpoint: Iterable[str]) -> None:
        """Read the files of the hosts that `to_checkpoint` returned."""
        await self.prefetch(checkpoint)

    # ---- reading -------------------------------------------------------------------------------------------------

    def _is_fresh(self, host: str) -> bool:
        cached = self._files.get(host)
        return cached is not None and self._clock() < cached.until

    def _store(self, url: str, robots: RobotsFile | None, seconds: float) -> None:
        host = site_key(url)
        self._files[host] = _CachedRobotsFile(f"{urlsplit(url).scheme}://{host}/", robots, self._clock() + seconds)
        if self._pacer is not None and robots is not None:
            self._pacer.set_crawl_delay(host, robots.delay_seconds)

    async def _read(self, host: str, url: str) -> None:
        async with self._reads:
            if self._is_fresh(host):
                return
            try:
                self._store(url, await self._fetch(url), FRESH_S)
            except (RobotsForbidden, SiteUnreachable) as error:
                log.warning("robots/unreadable %s: %s", host, error.message)
                self._store(url, None, RETRY_S)

    async def _fetch(self, url: str) -> RobotsFile:
        if self._pacer is None:
            return await self._fetch_now(url)
        async with self._pacer.turn(site_key(url)):
            return await self._fetch_now(url)

    async def _fetch_now(self, url: str) -> RobotsFile:
        return await RobotsFile.fetch(url, user_agent=self._user_agent, proxy=self._proxy, timeout_s=self._timeout_s)
