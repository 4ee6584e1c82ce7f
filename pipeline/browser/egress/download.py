"""Download of a small file without a browser, through the egress proxy: robots.txt and sitemaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

_TOO_MANY_REDIRECTS = 310


@dataclass(frozen=True, slots=True)
class Download:
    """Answer to a request.

    Attributes
    ----------
    status
        HTTP status; 310 after too many redirects.
    content
        The body of a successful answer, up to the chunk that exceeds the limit.
    location
        Where a redirect leads that was not followed; empty otherwise.
    """

    status: int
    content: bytes = b""
    location: str = ""


async def download(
    url: str,
    headers: Mapping[str, str],
    *,
    proxy: str,
    max_bytes: int,
    timeout_s: float,
    max_redirects: int = 0,
    decoded: bool = True,
) -> Download:
    """Request a file, and read it up to a limit.

    Parameters
    ----------
    url
        Its URL.
    headers
        Request headers.
    proxy
        HTTP proxy, `http://[user:password@]host:port`; empty for none.
    max_bytes
        Bytes that are read.
    timeout_s
        Time limit of each wait for the server, in seconds.
    max_redirects
        Redirects that are followed, to any host; 0: none.
    decoded
        Decode what the server compressed for the transfer. A few bytes may decode to a thousand times as many at once.

    Returns
    -------
    Download
        The answer.

    Raises
    ------
    httpx.HTTPError, httpx.InvalidURL
        If there is no answer.
    """
    async with httpx.AsyncClient(
        follow_redirects=max_redirects > 0,
        max_redirects=max_redirects,
        timeout=timeout_s,
        proxy=proxy or None,
        trust_env=not proxy,  # Proxies of the environment apply unless a proxy is given.
    ) as client:
        try:
            async with client.stream("GET", url, headers={"Accept-Encoding": "identity", **headers}) as answer:
                content = bytearray()
                if answer.is_success:
                    async for chunk in answer.aiter_bytes() if decoded else answer.aiter_raw():
                        content += chunk
                        if len(content) > max_bytes:
                            break
                location = answer.headers.get("location", "") if answer.is_redirect else ""
                return Download(answer.status_code, bytes(content), location)
        except httpx.TooManyRedirects:
            return Download(_TOO_MANY_REDIRECTS)
