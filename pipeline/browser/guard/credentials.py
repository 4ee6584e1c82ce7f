"""Password and headers for a site; they are sent to the site's own hosts only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.async_api import HttpCredentials

from waygraph.core.settings import ExploreSettings


@dataclass(frozen=True, slots=True)
class SiteCredentials:
    """Secrets of one site; `repr` shows none of them.

    Attributes
    ----------
    origin
        The only origin that gets the password: scheme, host and port.
    is_own
        Whether a URL is on one of the site's hosts.
    basic_auth
        `user:password`, empty without one.
    headers
        Sent with every request to one of the site's hosts.
    """

    origin: str
    is_own: Callable[[str], bool]
    basic_auth: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_settings(cls, url: str, explore: ExploreSettings, is_own: Callable[[str], bool]) -> SiteCredentials:
        """Build the credentials for the site of `url` from the settings."""
        parts = urlsplit(url)
        return cls(
            f"{parts.scheme}://{parts.netloc}",
            is_own,
            explore.basic_auth.get_secret_value(),
            {name: value.get_secret_value() for name, value in explore.headers.items()},
        )

    @property
    def http_credentials(self) -> HttpCredentials | None:
        """The password in the form of a browser context; None without one."""
        user, _, password = self.basic_auth.partition(":")
        return {"username": user, "password": password, "origin": self.origin} if user else None

    def with_headers(self, url: str, headers: Mapping[str, str]) -> list[dict[str, str]] | None:
        """Merge the site's headers into those of a request, in DevTools form; None if there is nothing to add."""
        if not self.headers or not self.is_own(url):
            return None
        ours = {name.lower() for name in self.headers}
        kept = {name: value for name, value in headers.items() if name.lower() not in ours}
        return [{"name": name, "value": value} for name, value in {**kept, **self.headers}.items()]
