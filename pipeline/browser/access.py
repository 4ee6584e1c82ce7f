"""What must be shown at a site's door? A password and headers, which go to the site's own hosts and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.async_api import HttpCredentials

from waygraph.settings import ExploreSettings


@dataclass(frozen=True, slots=True)
class Access:
    """Secrets of one site. Their values are in no `repr`.

    Attributes
    ----------
    origin : where the password is given, and nowhere else: scheme, host and port.
    headers : sent with every request to an own host.
    is_own : whether a URL is on one of the site's hosts.
    """

    origin: str
    is_own: Callable[[str], bool]
    basic_auth: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, url: str, explore: ExploreSettings, is_own: Callable[[str], bool]) -> Access:
        """What the settings say is shown at the site of `url`."""
        parts = urlsplit(url)
        return cls(
            f"{parts.scheme}://{parts.netloc}",
            is_own,
            explore.basic_auth.get_secret_value(),
            {name: value.get_secret_value() for name, value in explore.headers.items()},
        )

    @property
    def credentials(self) -> HttpCredentials | None:
        """The password as a browser context takes it; nothing when there is none."""
        user, _, password = self.basic_auth.partition(":")
        return {"username": user, "password": password, "origin": self.origin} if user else None

    def add_to(self, url: str, headers: Mapping[str, str]) -> list[dict[str, str]] | None:
        """Headers of a request with ours, as the DevTools protocol takes them; nothing when none are to be added."""
        if not self.headers or not self.is_own(url):
            return None
        ours = {name.lower() for name in self.headers}
        kept = {name: value for name, value in headers.items() if name.lower() not in ours}
        return [{"name": name, "value": value} for name, value in {**kept, **self.headers}.items()]
