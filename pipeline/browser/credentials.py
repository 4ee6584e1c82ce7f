"""What does a site get to know about who we are? Basic authentication and extra headers, for its own hosts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from playwright.async_api import HttpCredentials


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is sent along with requests.

    Attributes
    ----------
    headers : added to the requests that may get them: documents, `fetch`, `XMLHttpRequest`; not images and scripts.
    may_get_headers : whether a request to this URL may.
    basic : user, password, and the origin that they are for.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    may_get_headers: Callable[[str], bool] = lambda _: False
    basic: tuple[str, str, str] | None = field(default=None, repr=False)

    @property
    def for_context(self) -> HttpCredentials | None:
        """As browser contexts take them."""
        if self.basic is None:
            return None
        user, password, origin = self.basic
        return {"username": user, "password": password, "origin": origin, "send": "unauthorized"}

    def headers_for(self, url: str, own: Mapping[str, str]) -> list[dict[str, str]] | None:
        """All headers of a request, ours included, as the DevTools protocol takes them; nothing to leave it alone."""
        if not self.headers or not self.may_get_headers(url):
            return None
        return [{"name": name, "value": value} for name, value in {**own, **self.headers}.items()]


#: A visitor's.
NOBODY = Credentials()
