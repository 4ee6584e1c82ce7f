"""Answers of the guard to requests of one page that another one has sent before, over the DevTools protocol."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from waygraph.pipeline.browser.guard.child_targets import DevToolsSession
from waygraph.pipeline.browser.guard.reuse import reuse_seconds
from waygraph.pipeline.browser.guard.static_files import StaticFile, StaticFiles, request_key

log = logging.getLogger(__name__)


class StaticResponses:
    """Responses to the requests of one page for static files, and of its scripts.

    Parameters
    ----------
    files
        The store of the site, which all its pages share.
    page
        The page.
    """

    def __init__(self, files: StaticFiles, page: Page) -> None:
        self._files = files
        self._page = page
        page.on("close", self._release)

    async def find(self, event: Mapping[str, Any]) -> StaticFile | None:
        """Return the stored response to an intercepted request, see `StaticFiles.find`."""
        key = request_key(event["resourceType"], event["request"])
        if key is None:
            return None

        return await self._files.find(key, partial(self._cookies, key.url), self)

    async def _cookies(self, url: str) -> str:
        cookies = await self._page.context.cookies(url)
        return "; ".join(sorted(f"{each.get('name')}={each.get('value')}" for each in cookies))

    def expect_changes(self) -> None:
        """See `StaticFiles.expect_changes`."""
        self._files.expect_changes()

    def awaits(self, event: Mapping[str, Any]) -> bool:
        """Return whether the response to a request that is about to be sent must be intercepted for `store`."""
        key = request_key(event["resourceType"], event["request"])
        return key is not None and self._files.awaits(key, self)

    async def store(self, session: DevToolsSession, event: Mapping[str, Any]) -> None:
        """Store an intercepted response, if it is one that `awaits` wanted and may be stored."""
        key = request_key(event["resourceType"], event["request"])
        if key is None or not self._files.awaits(key, self):
            return
        headers: dict[str, str] = {}
        for header in event.get("responseHeaders", ()):
            name = header["name"].lower()
            headers[name] = f"{headers[name]}, {header['value']}" if name in headers else header["value"]
        status = event.get("responseStatusCode", 0)
        seconds = reuse_seconds(key.kind, status, headers)
        if not seconds:
            self._files.end(key, is_storable=False)
            return
        try:
            content = await session.send("Fetch.getResponseBody", {"requestId": event["requestId"]})
            # Chromium tells the guard nothing of `Set-Cookie`, which it has obeyed already.
            sets_cookies = await self._cookies(key.url) != self._files.cookies_before(key)
        except PlaywrightError as error:
            # The page was left, or the server broke off.
            log.debug("guard/not_stored %s: %s", key.url, error)
            self._files.end(key)
            return
        if sets_cookies:
            self._files.end(key)
            return
        self._files.add(
            key, headers, content["body"], is_base64=content["base64Encoded"], status=status, seconds=seconds
        )

    def end(self, event: Mapping[str, Any]) -> None:
        """Let others send a request that this page could not send."""
        key = request_key(event["resourceType"], event["request"])
        if key is not None and self._files.awaits(key, self):
            self._files.end(key)

    def leave(self) -> None:
        """End the requests of the document that the page leaves: the browser cancels them."""
        self._files.release(self)

    def _release(self, _page: Page) -> None:
        self.leave()
