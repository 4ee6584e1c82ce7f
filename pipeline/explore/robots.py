"""Which URLs does the site ask robots not to visit? RFC 9309, parsed by Protego."""

from __future__ import annotations

from urllib.parse import urljoin

import httpx
from protego import Protego

from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.policy import Refusal
from waygraph.errors import RobotsForbidden

#: The product token that robots.txt rules can name.
AGENT = "waygraph"
MAX_BYTES = 512 * 1024
TIMEOUT_S = 10.0


class Robots:
    """The robots.txt of one site, as a policy."""

    def __init__(self, text: str) -> None:
        self._rules = Protego.parse(text)

    @classmethod
    async def fetch(cls, start_url: str, *, user_agent: str) -> Robots:
        """Load /robots.txt of the site: 4xx means that all is allowed, 5xx that nothing is (RFC 9309, 2.3.1).

        A host that cannot be reached at all is left to the browser to report.

        Raises
        ------
        RobotsForbidden
            When the server fails to answer for its robots.txt (5xx).
        """
        url = urljoin(start_url, "/robots.txt")
        async with httpx.AsyncClient(follow_redirects=True, max_redirects=5, timeout=TIMEOUT_S) as client:
            try:
                async with client.stream("GET", url, headers={"User-Agent": user_agent}) as answer:
                    if answer.status_code >= 500:
                        raise RobotsForbidden(
                            f"{url} answered {answer.status_code}, and robots.txt must be readable first.",
                            hint="Try again later, or use --no-robots on a site of your own.",
                        )
                    if answer.status_code >= 400:
                        return cls("")
                    content = b""
                    async for chunk in answer.aiter_bytes():
                        content += chunk
                        if len(content) >= MAX_BYTES:
                            break
            except (httpx.TransportError, httpx.TooManyRedirects, httpx.DecodingError):
                return cls("")
        return cls(content[:MAX_BYTES].decode("utf-8", errors="replace"))

    def refuse_url(self, url: str) -> Refusal | None:
        """Why a document must not be loaded."""
        return None if self._rules.can_fetch(url, AGENT) else Refusal("robots", url)

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why a link must not be followed."""
        action = candidate.action
        if action.kind != "click" or not action.target.startswith(("http:", "https:")):
            return None
        return self.refuse_url(action.target)
