"""Requests for the files in which a site lists itself: as a visitor with the session's cookies, within its policies."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from http import HTTPStatus
from urllib.parse import urljoin, urlsplit

import httpx

from waygraph.core.settings import ExploreSettings
from waygraph.core.urls import site_key
from waygraph.pipeline.browser.egress.download import download
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.session.start import Start
from waygraph.pipeline.explore.sitemap.sitemap_file import MAX_BYTES

log = logging.getLogger(__name__)

#: Time limit of one file, and of each wait for the server, in seconds.
FILE_SECONDS, _WAIT_SECONDS = 60.0, 10.0
_MAX_REDIRECTS = 5
_COME_AGAIN = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class NotLoaded(Exception):
    """A file was not loaded.

    Parameters
    ----------
    reason
        `foreign` (of another site), `refused` (by a policy), `unread` (no answer, or one without content).
    ends
        The host asks to come again later, so nothing more is requested.
    """

    def __init__(self, reason: str, *, ends: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ends = ends


class SiteFiles:
    """Loads files of a site in the way that its pages are requested, but without the browser.

    Each request, redirects included, waits for its turn at the host, goes through the egress proxy, stays within the
    scope and robots.txt, and carries the session's cookies, and headers and the password of the settings.

    Parameters
    ----------
    start
        The prepared start page: session, scope, policies, proxy.
    explore
        Settings with headers and password.
    pacer
        Turns at hosts.
    """

    def __init__(self, start: Start, explore: ExploreSettings, pacer: Pacer) -> None:
        self._start = start
        self._explore = explore
        self._pacer = pacer

    async def load(self, url: str) -> bytes:
        """Return the content of a file, up to the chunk that exceeds `MAX_BYTES`, as the server sends it.

        Parameters
        ----------
        url
            URL of the file.

        Returns
        -------
        bytes
            The content; compressed if the server sends it so.

        Raises
        ------
        NotLoaded
            If it is not loaded.
        """
        try:
            async with asyncio.timeout(None) as limit:
                for _ in range(1 + _MAX_REDIRECTS):
                    await self._check(url)
                    async with self._pacer.turn(site_key(url)):
                        # Waiting for the turn does not count.
                        limit.reschedule(asyncio.get_running_loop().time() + FILE_SECONDS)
                        answer = await download(
                            url,
                            self._headers(url),
                            proxy=self._start.boundary.proxy.url,
                            max_bytes=MAX_BYTES,
                            timeout_s=_WAIT_SECONDS,
                            decoded=False,
                        )
                    limit.reschedule(None)
                    if answer.status in _COME_AGAIN:
                        raise NotLoaded("unread", ends=True)
                    if not answer.location:
                        break
                    url = urljoin(url, answer.location)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            log.info("sitemap/unread %s: %s", url, error or type(error).__name__)
            raise NotLoaded("unread") from error
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise NotLoaded("unread")
        return answer.content

    async def _check(self, url: str) -> None:
        """Raise `NotLoaded` if a file is of another site, or a policy refuses it."""
        if self._start.scope.refuse_url(url) is not None:
            raise NotLoaded("foreign")
        if self._start.robots is not None:
            await self._start.robots.prefetch([url])
        if self._start.refuse_url(url) is not None:
            raise NotLoaded("refused")

    def _headers(self, url: str) -> dict[str, str]:
        headers = {
            "User-Agent": self._start.user_agent,
            "Accept": "application/xml, text/plain;q=0.9, */*;q=0.5",
        }
        if cookies := self._cookies(url):
            headers["Cookie"] = cookies
        password, own = self._explore.basic_auth.get_secret_value(), self._start.url
        if password and urlsplit(url)[:2] == urlsplit(own)[:2]:
            headers["Authorization"] = f"Basic {b64encode(password.encode()).decode()}"
        return headers | {name: value.get_secret_value() for name, value in self._explore.headers.items()}

    def _cookies(self, url: str) -> str:
        """Return the session's cookies for a URL (RFC 6265, section 5.4)."""
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path or "/"
        return "; ".join(
            f"{cookie['name']}={cookie['value']}"
            for cookie in (self._start.session.storage_state or {}).get("cookies", [])
            if f".{host}".endswith(f".{cookie['domain'].lstrip('.')}")
            and (cookie["domain"].startswith(".") or host == cookie["domain"])
            and (path == cookie["path"] or path.startswith(f"{cookie['path'].rstrip('/')}/"))
            and (not cookie.get("secure") or parts.scheme == "https")
        )
