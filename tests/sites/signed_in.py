"""A site that shows its pages to one session only, with icons that end it, and a session that may expire.

Icons have no names: what they do is said by their addresses, which are those of standards and of frameworks. Every
address in `ENDS` ends the session at the server. Those in `STAYS` resemble them and show pages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.sites.server import Answer, FixtureServer, Page
from waygraph.demo_site.local_server import Request

SESSION = "s-5f2e77aa"
ENDS = (
    "/oidc/end_session", "/saml/slo", "/saml/SingleLogout", "/cas/logout", "/auth/exit", "/user/disconnect", "/leave",
    "/salir", "/kijelentkezes", "/ログアウト", "/login?bye=1", "/adfs/ls/?wa=wsignout1.0",
)  # fmt: skip
STAYS = ("/agents", "/leave/requests", "/exits", "/sessions/list", "/network/disconnected", "/users/me")
ORDERS = tuple(f"/orders/{number}" for number in range(1, 9))


class SignedInSite(FixtureServer):
    """The site. `documents` counts the pages that the session was shown; the session expires after `expires_after`."""

    def __init__(self, *, expires_after: int = 10**9, asks: str = "redirect") -> None:
        super().__init__(self._pages())
        self.is_alive = True
        self.documents = 0
        self.expires_after = expires_after
        self.asks = asks

    def _pages(self) -> Mapping[str, Answer]:
        private = dict.fromkeys(("/", "/orders", *STAYS, *ORDERS), self._private)
        return {**private, "/login": self._login, "*": self._end}

    def session_file(self, folder: Path) -> Path:
        """Return the file of a session that is signed in."""
        cookie = {"name": "sid", "value": SESSION, "domain": "127.0.0.1", "path": "/", "expires": -1}
        cookie |= {"httpOnly": True, "secure": False, "sameSite": "Lax"}
        file = folder / "session.json"
        file.write_text(json.dumps({"cookies": [cookie], "origins": []}))
        return file

    def _private(self, request: Request) -> str | Page:
        if request.path.startswith("/users"):
            return _shown("Me", "<p>Ann</p>", is_signed_in=self._knows(request))
        if not self._knows(request):
            if self.asks == "redirect":
                return Page(redirect="/login")
            if self.asks == "in place":
                return self._login(request)
            return _shown("Welcome", "<p>What everybody sees.</p>", is_signed_in=False)
        self.documents += 1
        self.is_alive = self.documents < self.expires_after
        name = request.path.strip("/").replace("/", " ") or "Start"
        links = "".join(f"<p><a href='{path}'>Order {path[-1]}</a></p>" for path in ORDERS if name == "orders")
        return _shown(name.title(), f"<p>All about {name}.</p>{links}", is_signed_in=True)

    def _knows(self, request: Request) -> bool:
        return self.is_alive and SESSION in request.headers.get("Cookie", "")

    def _login(self, request: Request) -> str:
        if request.query:
            self.is_alive = False
        return "<title>Sign in</title><h1>Sign in</h1><form><input name=user><input type=password></form>"

    def _end(self, request: Request) -> Page:
        if request.path in {"/robots.txt", "/sitemap.xml", "/favicon.ico"}:
            return Page(status=404)
        self.is_alive = False
        return Page(redirect="/login")


def _shown(title: str, body: str, *, is_signed_in: bool) -> str:
    icons = "".join(f'<a href="{path}"><svg width=20 height=20><rect width=20 height=20 /></svg></a> ' for path in ENDS)
    pages = "".join(f"<a href='{path}'>{path.strip('/').replace('/', ' ')}</a> " for path in ("/orders", *STAYS))
    bar = f"<nav>{pages}{icons}</nav>" if is_signed_in else "<nav><a href='/login'>Sign in</a></nav>"
    return f"<!doctype html><title>{title}</title>{bar}<h1>{title}</h1>{body}"
