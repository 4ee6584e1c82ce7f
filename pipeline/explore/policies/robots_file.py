"""The robots.txt file of one host: loaded and parsed as RFC 9309 says (parser: Protego)."""

from __future__ import annotations

import asyncio
import logging
import math
from urllib.parse import urlsplit

import httpx
from protego import Protego

from waygraph.core.errors import RobotsForbidden, SiteUnreachable
from waygraph.core.urls import site_key
from waygraph.pipeline.browser.egress.download import download
from waygraph.pipeline.explore.policies.policy import Refusal

log = logging.getLogger(__name__)

#: Product token that robots.txt rules can name.
AGENT = "waygraph"
#: Bytes of a file that are read. RFC 9309, section 2.5, requires at least 500 KiB.
MAX_BYTES = 512 * 1024
#: Time limit for a file, in seconds.
TIMEOUT_S = 10.0
#: Least time after which a host that failed to answer may be tried again, in seconds.
_RETRY_AFTER_S = 5.0
_MAX_REDIRECTS = 5


class RobotsFile:
    """Rules of one robots.txt file.

    Parameters
    ----------
    text
        Content of the file; empty allows everything.
    """

    def __init__(self, text: str) -> None:
        self._rules = Protego.parse(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))

    @property
    def delay_seconds(self) -> float | None:
        """Least time between two requests, by `Crawl-delay` and `Request-rate`; None if the file sets none."""
        delays: list[float] = [] if (delay := self._rules.crawl_delay(AGENT)) is None else [delay]
        if (rate := self._rules.request_rate(AGENT)) is not None:
            delays.append(rate.seconds / rate.requests)
        return max((seconds for seconds in delays if math.isfinite(seconds)), default=None)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """URLs of the sitemaps that the file names, as written."""
        return tuple(self._rules.sitemaps)

    def refuse_url(self, url: str) -> Refusal | None:
        """Return why a document is not loaded."""
        return None if self._rules.can_fetch(url, AGENT) else Refusal("robots", url)

    @classmethod
    async def fetch(cls, url: str, *, user_agent: str, proxy: str = "", timeout_s: float = TIMEOUT_S) -> RobotsFile:
        """Load the robots.txt of the host of a URL (RFC 9309, section 2.3.1).

        A 4xx status, too many redirects or a failed connection allow everything. A host that cannot be reached at all
        is reported later, when the browser loads its page.

        Parameters
        ----------
        url
            Any URL of the host.
        user_agent
            User agent of the browser.
        proxy
            HTTP proxy of the browser, `http://[user:password@]host:port`; empty for none.
        timeout_s
            Time limit in seconds.

        Returns
        -------
        RobotsFile
            The rules of the host.

        Raises
        ------
        RobotsForbidden
            If the server answers with a 5xx status, which forbids everything.
        SiteUnreachable
            If the server accepts the connection and does not answer in time.
        """
        # Built without user and password, which must not appear in messages.
        address = f"{urlsplit(url).scheme}://{site_key(url)}/robots.txt"
        try:
            async with asyncio.timeout(timeout_s):
                answer = await download(
                    address,
                    {"User-Agent": user_agent, "Accept": "text/plain, */*;q=0.5"},
                    proxy=proxy,
                    max_bytes=MAX_BYTES,
                    timeout_s=TIMEOUT_S,
                    max_redirects=_MAX_REDIRECTS,
                )
        except (TimeoutError, httpx.ReadTimeout, httpx.PoolTimeout, httpx.WriteTimeout) as error:
            raise SiteUnreachable(
                f"{address} gave no answer for {timeout_s:g} s, and robots.txt must be readable first.",
                hint="Try again later, or use --no-robots on a site of your own.",
                retry_after_s=_RETRY_AFTER_S,
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.info("robots/not_loaded %s: %s", address, error or type(error).__name__)
            return cls("")
        if answer.status >= 500:
            raise RobotsForbidden(
                f"{address} answered {answer.status}, and robots.txt must be readable first.",
                hint="Try again later, or use --no-robots on a site of your own.",
                retry_after_s=_RETRY_AFTER_S,
            )
        if answer.status >= 300:
            return cls("")
        # In a thread: half a megabyte of rules takes half a second to parse.
        return await asyncio.to_thread(cls, _decode(answer.content))


def _decode(content: bytes) -> str:
    r"""Return the text of a file, without the rule that the size limit cuts in two.

    >>> _decode(b"\xef\xbb\xbfUser-agent: *"), _decode("Disallow: /é".encode("latin-1"))
    ('\ufeffUser-agent: *', 'Disallow: /\ufffd')
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content[:MAX_BYTES].decode("utf-16", errors="replace")
    if len(content) > MAX_BYTES:
        log.warning("robots/cut: a robots.txt is longer than %d bytes; the rest is not read", MAX_BYTES)
        content = content[:MAX_BYTES]
        content = content[: max(content.rfind(b"\n"), content.rfind(b"\r")) + 1]
    return content.decode("utf-8", errors="replace")
