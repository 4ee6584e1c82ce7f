"""Parts of URLs that may or may not identify a page: session ids, hashes, timestamps, and links within a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, urlsplit

from waygraph.core.urls import is_random_token


@dataclass(frozen=True, slots=True)
class UrlParts:
    """The parts of a URL that are compared between pages of one kind.

    Attributes
    ----------
    host
        Scheme and host, as in `https://example.org`.
    segments
        Segments of the path. Those of a fragment that is a client-side route follow after a segment "#".
    query
        All query parameters in order, those of the route included.
    """

    host: str
    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the query parameters."""
        return tuple(key for key, _ in self.query)


@lru_cache(maxsize=65_536)
def url_parts(url: str) -> UrlParts:
    """Split a URL into its parts. A URL that cannot be parsed becomes one opaque segment."""
    try:
        parts = urlsplit(url)
        route = urlsplit(parts.fragment.lstrip("!"))
    except ValueError:
        return UrlParts("", (url,), ())
    segments = tuple(parts.path.split("/")[1:])
    if parts.fragment:
        segments = (*segments, "#", *route.path.split("/")[1:])
    query = (*parse_qsl(parts.query, keep_blank_values=True), *parse_qsl(route.query, keep_blank_values=True))
    return UrlParts(f"{parts.scheme}://{parts.netloc}", segments, query)


def mask_random_tokens(url: str) -> str:
    """Replace the random-looking parts of a URL by `*`; links that differ in their session ids then are equal.

    >>> mask_random_tokens("http://x/a?id=17&zx=9f86d081884c7d65")
    'http://x/a?id=17&zx=*'
    """
    if not url:
        return url
    parts = url_parts(url)
    path = "/".join("*" if is_random_token(segment) else segment for segment in parts.segments)
    query = "&".join(f"{key}={'*' if is_random_token(value) else value}" for key, value in parts.query)
    return f"{parts.host}/{path}{'?' if query else ''}{query}"


def within_page(target: str, page_url: str) -> str:
    """Return the fragment alone of a link to a part of its own page, and any other link unchanged.

    >>> within_page("http://x/help?topic=1#end", "http://x/help?topic=1#start")
    '#end'
    >>> within_page("http://x/help?topic=2#end", "http://x/help?topic=1")
    'http://x/help?topic=2#end'
    """
    address, mark, _ = target.partition("#")
    return target.removeprefix(address) if mark and address == page_url.partition("#")[0] else target


def moved_within_page(target: str, page_url: str, other_url: str) -> str:
    """Return a link of one page as it is on another one: links to parts of the page lead to parts of the other.

    >>> moved_within_page("http://x/#end", "http://x/", "http://x/?id=start")
    'http://x/?id=start#end'
    """
    part = within_page(target, page_url)
    return target if part == target else f"{other_url.partition('#')[0]}{part}"


class PageNames:
    """Names of pages by URL: the URL without its random-looking parts, unless these tell pages apart.

    In most sites such a part is a session id. In a map with states at several URLs that differ in nothing else, it
    identifies pages (commits, for example): the explorer merges pages if the part has no meaning.

    Parameters
    ----------
    *maps
        For each map the URLs of its states.

    Examples
    --------
    >>> names = PageNames(["http://x/cart?sid=9f86d081884c7d65", "http://x/info/0a1b2c3d", "http://x/info/4e5f6a7b"])
    >>> names.of("http://x/cart?sid=0f1e2d3c4b5a6978"), names.of("http://x/info/8c9dae0f")
    ('http://x/cart?sid=*', 'http://x/info/8c9dae0f')
    """

    def __init__(self, *maps: Iterable[str]) -> None:
        #: Masked URLs of which one map has several unmasked variants.
        self._ambiguous: set[str] = set()
        for urls in maps:
            known = set[str]()
            for masked in map(mask_random_tokens, set(urls)):
                (self._ambiguous if masked in known else known).add(masked)

    def has_significant_tokens(self, url: str) -> bool:
        """Return whether the random-looking parts of a URL identify its page."""
        return mask_random_tokens(url) in self._ambiguous

    def of(self, url: str) -> str:
        """Return the name of the page at a URL."""
        masked = mask_random_tokens(url)
        return url if masked in self._ambiguous else masked
