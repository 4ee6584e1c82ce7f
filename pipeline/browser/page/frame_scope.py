"""Which frames of other origins belong to the site of a page."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from waygraph.core.urls import site_key


@dataclass(frozen=True, slots=True)
class FrameScope:
    """Frames that a snapshot includes: those of the page's own host, of listed hosts, and of one registrable domain.

    Attributes
    ----------
    hosts
        Site keys (host, with the port unless it is the default of the scheme).
    domain
        A domain whose hosts all belong to the site, with any port; empty: none.
    """

    hosts: frozenset[str] = frozenset()
    domain: str = ""

    def covers(self, url: str, page_url: str) -> bool:
        """Whether a frame with the document `url` belongs to the same site as the page around it.

        >>> FrameScope(domain="x.example").covers("https://a.x.example:8443/", "https://b.x.example/")
        True
        >>> FrameScope().covers("http://127.0.0.1:81/", "http://127.0.0.1:80/")
        False
        """
        if not url.startswith(("http:", "https:")):
            return url.startswith(("about:srcdoc", "about:blank"))  # written by the page itself
        key = site_key(url)
        host = urlsplit(url).hostname or ""
        in_domain = bool(self.domain) and (host == self.domain or host.endswith(f".{self.domain}"))
        return key in self.hosts or in_domain or key == site_key(page_url)
