"""Local HTTP server of hand-written pages, for tests that need a page with one specific phenomenon.

with FixtureServer({"/": "<button>Go</button>", "/old": Page(redirect="/"), "/slow": Page("late", hold=event)}) as site:
    page.goto(site.url)
    assert site.requests == [("GET", "/")]
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from waygraph.demo_site.local_server import LocalServer, Request, Response

ICON = b"\x89PNG\r\n\x1a\n"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Page:
    """One answer of a `FixtureServer`.

    Attributes
    ----------
    body : what is sent; a `Path` is read from disk for every request.
    status : HTTP status.
    content_type : media type; empty: by the suffix of a `Path`, else HTML.
    headers : further response headers.
    redirect : sends `Location` with this value, with status 302 unless `status` says another.
    hold : the answer waits for this event, at most `hold_at_most_s`; closing the server sets it.
    drop : the connection is closed without an answer.

    """

    body: str | bytes | Path = ""
    status: int = 200
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    redirect: str = ""
    hold: threading.Event | None = None
    hold_at_most_s: float = 20.0
    drop: bool = False


Answer = str | bytes | Path | Page | Callable[[Request], "str | bytes | Path | Page"]


class FixtureServer(LocalServer):
    """Serves `pages` by exact target (path with query), then by path, then "*"; everything else is a 404.

    A page may be HTML, bytes, a file, a `Page`, or a function of the request that returns one of these. `pages` may
    be changed while the server runs: `site.pages["/"] = "<p>changed</p>"`. Requests with any method are answered and
    logged, so a test can assert that no POST arrived (`site.mutations == 0`). `/robots.txt` is a 404 unless given.
    """

    def __init__(self, pages: Mapping[str, Answer], *, port: int = 0) -> None:
        super().__init__(self._page, port=port)
        self.pages: dict[str, Answer] = dict(pages)
        self._held: list[threading.Event] = []
        self._closing = False

    def at(self, path: str) -> str:
        """Absolute URL of a path."""
        return self.url + path.removeprefix("/")

    @property
    def paths(self) -> list[str]:
        """Targets of all requests, in order, without the browser's own request for an icon."""
        return [target for _, target in self.requests if target != "/favicon.ico"]

    def close(self) -> None:
        """Set the events that answers still wait for, then stop."""
        self._closing = True
        for event in self._held:
            event.set()
        super().close()

    def _page(self, request: Request) -> Response:
        answer = self.pages.get(request.target, self.pages.get(request.path, self.pages.get("*")))
        if answer is None:
            if request.path == "/favicon.ico":
                return Response(ICON, content_type="image/png")
            return Response("<!doctype html><title>Not found</title><h1>Not found</h1>", status=404)
        page = answer(request) if callable(answer) else answer
        if not isinstance(page, Page):
            page = Page(page)
        if page.hold is not None:
            self._held.append(page.hold)
            if not self._closing:
                page.hold.wait(page.hold_at_most_s)
        headers = dict(page.headers)
        status = page.status
        if page.redirect:
            headers["Location"] = page.redirect
            status = 302 if status == 200 else status
        if isinstance(page.body, Path):
            body: str | bytes = page.body.read_bytes()
            content_type = page.content_type or TYPES.get(page.body.suffix, "application/octet-stream")
        else:
            body, content_type = page.body, page.content_type or TYPES[".html"]
        return Response(body, status=status, content_type=content_type, headers=headers, drop=page.drop)


def free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
