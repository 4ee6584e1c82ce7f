"""Which URLs does a site ask robots not to visit, and how fast may they come? RFC 9309, parsed by Protego."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from protego import Protego

from index.graph import PASSIVE, site_key
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.pacing import Pacer
from pipeline.explore.policy import Refusal
from waygraph.errors import RobotsForbidden, SiteUnreachable

log = logging.getLogger(__name__)

#: The product token that robots.txt rules can name.
AGENT = "waygraph"
#: What lies beyond is not read (RFC 9309, 2.5 asks for at least 500 KiB).
MAX_BYTES = 512 * 1024
#: A host that takes longer for its robots.txt gives no answer.
TIMEOUT_S = 10.0
#: Of a host that failed to answer, how much later it may do so, at least.
_AFTER_S = 5.0
#: What was read holds for a day (RFC 9309, 2.4), that it could not be read for a few minutes.
FRESH_S, RETRY_S = 24 * 3_600.0, 300.0
_MAX_REDIRECTS = 5
#: Files that are read at once.
_AT_ONCE = 8


class Robots:
    """The robots.txt of one host, as a policy."""

    def __init__(self, text: str) -> None:
        self._rules = Protego.parse(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))

    @property
    def delay_seconds(self) -> float | None:
        """Least time between two requests, by `Crawl-delay` and `Request-rate`; None when it asks for none."""
        asked: list[float] = [] if (delay := self._rules.crawl_delay(AGENT)) is None else [delay]
        if (rate := self._rules.request_rate(AGENT)) is not None:
            asked.append(rate.seconds / rate.requests)
        return max((seconds for seconds in asked if math.isfinite(seconds)), default=None)

    def refuse_url(self, url: str) -> Refusal | None:
        """Why a document must not be loaded."""
        return None if self._rules.can_fetch(url, AGENT) else Refusal("robots", url)

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why a link must not be followed."""
        return self.refuse_url(link) if (link := _link(candidate)) else None

    @classmethod
    async def fetch(cls, url: str, *, user_agent: str, proxy: str = "", timeout_s: float = TIMEOUT_S) -> Robots:
        """Load the robots.txt of the host of `url`: 4xx means that all is allowed, 5xx that nothing is (2.3.1).

        A host that cannot be reached at all is left to the browser to report.

        Parameters
        ----------
        proxy : the HTTP proxy that the browser uses, `http://[user:password@]host:port`; empty: none.

        Raises
        ------
        RobotsForbidden
            When the server fails to answer for its robots.txt (5xx).
        SiteUnreachable
            When it takes the connection and never answers.

        """
        # Without user and password, which must not get into messages.
        address = f"{urlsplit(url).scheme}://{site_key(url)}/robots.txt"
        try:
            async with asyncio.timeout(timeout_s):
                status, content = await _download(address, user_agent, proxy)
        except (TimeoutError, httpx.ReadTimeout, httpx.PoolTimeout, httpx.WriteTimeout) as error:
            raise SiteUnreachable(
                f"{address} gave no answer for {timeout_s:g} s, and robots.txt must be readable first.",
                hint="Try again later, or use --no-robots on a site of your own.",
                after_s=_AFTER_S,
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.info("robots/not_loaded %s: %s", address, error or type(error).__name__)
            return cls("")
        if status >= 500:
            raise RobotsForbidden(
                f"{address} answered {status}, and robots.txt must be readable first.",
                hint="Try again later, or use --no-robots on a site of your own.",
                after_s=_AFTER_S,
            )
        if status >= 300:
            return cls("")  # absent, or redirected for ever
        # Half a megabyte of rules is half a second of parsing.
        return await asyncio.to_thread(cls, _decode(content))


class RobotsByHost:
    """The robots.txt files of all hosts of a scope, as one policy. A host whose file was not read yet is refused.

    Parameters
    ----------
    user_agent, proxy : what the browser uses.
    pacer : told what delays the hosts ask for; loading the files counts as visiting.
    clock : seconds.

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
        self._known: dict[str, _Known] = {}
        self._unread: dict[str, str] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def start(self, url: str) -> None:
        """Read the file of the host that exploring starts at.

        Raises
        ------
        RobotsForbidden, SiteUnreachable
            See `Robots.fetch`; of other hosts, a file that cannot be read only refuses their pages.

        """
        self._keep(url, await self._fetch(url), FRESH_S)

    async def prefetch(self, urls: Iterable[str] = ()) -> None:
        """Read the files of the hosts of `urls`, and of those that were refused for not being read yet.

        Pass URLs of the scope alone. Known files are not read again for a day.
        """
        wanted = {site_key(url): url for url in urls if url.startswith(("http:", "https:"))} | self._unread
        self._unread = {}
        stale = {host: url for host, url in wanted.items() if not self._is_fresh(host)}
        await asyncio.gather(*(self._load(host, url) for host, url in stale.items()))

    def remember(self) -> list[str]:
        """Hosts whose files a resumed run must read before it goes on: until then it would refuse their pages."""
        return sorted(known.url for known in self._known.values())

    async def recall(self, memory: Iterable[str]) -> None:
        """Read the files of what `remember` gave."""
        await self.prefetch(memory)

    def has_read(self, url: str) -> bool:
        """Whether the file of the host of `url` was read."""
        return site_key(url) in self._known

    def refuse_url(self, url: str) -> Refusal | None:
        """Why a document must not be loaded."""
        host = site_key(url)
        known = self._known.get(host)
        if known is None:
            self._unread[host] = url
            return Refusal("robots", f"the robots.txt of {host} was not read yet")
        if known.robots is None:
            return Refusal("robots", f"the robots.txt of {host} could not be read")
        return known.robots.refuse_url(url)

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why a link must not be followed."""
        return self.refuse_url(link) if (link := _link(candidate)) else None

    def _is_fresh(self, host: str) -> bool:
        known = self._known.get(host)
        return known is not None and self._clock() < known.until

    def _keep(self, url: str, robots: Robots | None, seconds: float) -> None:
        host = site_key(url)
        self._known[host] = _Known(f"{urlsplit(url).scheme}://{host}/", robots, self._clock() + seconds)
        if self._pacer is not None and robots is not None:
            self._pacer.ask_delay(host, robots.delay_seconds)

    async def _load(self, host: str, url: str) -> None:
        async with self._at_once:
            if self._is_fresh(host):
                return
            try:
                self._keep(url, await self._fetch(url), FRESH_S)
            except (RobotsForbidden, SiteUnreachable) as error:
                log.warning("robots/unreadable %s: %s", host, error.message)
                self._keep(url, None, RETRY_S)

    async def _fetch(self, url: str) -> Robots:
        if self._pacer is None:
            return await self._fetch_now(url)
        async with self._pacer.turn(site_key(url)):
            return await self._fetch_now(url)

    async def _fetch_now(self, url: str) -> Robots:
        return await Robots.fetch(url, user_agent=self._user_agent, proxy=self._proxy, timeout_s=self._timeout_s)


@dataclass(frozen=True, slots=True)
class _Known:
    """A file that was read, or None for one that could not be; of which host, and until when that holds."""

    url: str
    robots: Robots | None
    until: float


def _link(candidate: Candidate) -> str:
    """Where a click leads, if that is told by its element."""
    action = candidate.action
    return action.target if action.kind not in PASSIVE and action.target.startswith(("http:", "https:")) else ""


async def _download(address: str, user_agent: str, proxy: str) -> tuple[int, bytes]:
    """Status and the first `MAX_BYTES` of the answer; status 310 after too many redirects."""
    async with httpx.AsyncClient(
        follow_redirects=True,
        max_redirects=_MAX_REDIRECTS,
        timeout=TIMEOUT_S,
        proxy=proxy or None,
        trust_env=not proxy,  # what the environment says about proxies holds when we say nothing
    ) as client:
        headers = {"User-Agent": user_agent, "Accept-Encoding": "identity", "Accept": "text/plain, */*;q=0.5"}
        try:
            async with client.stream("GET", address, headers=headers) as answer:
                content = bytearray()
                if answer.is_success:
                    async for chunk in answer.aiter_bytes():
                        content += chunk
                        if len(content) > MAX_BYTES:
                            break
                return answer.status_code, bytes(content)
        except httpx.TooManyRedirects:
            return 310, b""


def _decode(content: bytes) -> str:
    r"""The text of a file, without the rule that was cut in two at the end of what is read.

    >>> _decode(b"\xef\xbb\xbfUser-agent: *"), _decode("Disallow: /é".encode("latin-1"))
    ('\ufeffUser-agent: *', 'Disallow: /\ufffd')
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content[:MAX_BYTES].decode("utf-16", errors="replace")
    if len(content) > MAX_BYTES:
        log.warning("robots/cut: a robots.txt is longer than %d bytes; the rest of it is not read", MAX_BYTES)
        content = content[:MAX_BYTES]
        content = content[: max(content.rfind(b"\n"), content.rfind(b"\r")) + 1]
    return content.decode("utf-8", errors="replace")
