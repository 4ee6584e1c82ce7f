"""Which parts of a URL look drawn at random? URLs taken apart into what names a page and what may vary."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, urlsplit

_HEX = re.compile(r"(?:0x)?[0-9a-f]{8,}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9]{12,}")
_SWITCH = re.compile(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")


@dataclass(frozen=True, slots=True)
class Shape:
    """A URL in parts: what has to agree, and what may vary, between two pages of one kind.

    `segments` are the pieces of the path; those of a fragment that is a route follow after a piece "#". `query` holds
    all parameters in order, those of the route included.
    """

    host: str
    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the query parameters."""
        return tuple(key for key, _ in self.query)


@lru_cache(maxsize=65_536)
def shape_of(url: str) -> Shape:
    """Take a URL apart. What cannot be parsed is one opaque segment."""
    try:
        parts = urlsplit(url)
        route = urlsplit(parts.fragment.lstrip("!"))
    except ValueError:
        return Shape("", (url,), ())
    segments = tuple(parts.path.split("/")[1:])
    if parts.fragment:
        segments = (*segments, "#", *route.path.split("/")[1:])
    query = (*parse_qsl(parts.query, keep_blank_values=True), *parse_qsl(route.query, keep_blank_values=True))
    return Shape(f"{parts.scheme}://{parts.netloc}", segments, query)


def is_token(text: str) -> bool:
    """Whether `text` looks drawn at random or by the clock, so that it cannot be a word, a small number or a slug.

    >>> [is_token(t) for t in ("9f86d081884c7d65", "1718031234567", "red-shirt-2024", "17")]
    [True, True, False, False]
    """
    if _UUID.fullmatch(text):
        return True
    if text.isdigit():
        return len(text) >= 9
    if _HEX.fullmatch(text):
        return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
    return any(len(_SWITCH.findall(run)) >= 3 for run in _RUN.findall(text))


def untokened(url: str) -> str:
    """A URL with all that looks drawn at random masked: what two links with session ids of their own share.

    >>> untokened("http://x/a?id=17&zx=9f86d081884c7d65")
    'http://x/a?id=17&zx=*'
    """
    if not url:
        return url
    shape = shape_of(url)
    path = "/".join("*" if is_token(segment) else segment for segment in shape.segments)
    query = "&".join(f"{key}={'*' if is_token(value) else value}" for key, value in shape.query)
    return f"{shape.host}/{path}{'?' if query else ''}{query}"


class PageNames:
    """What names the page at a URL: all of it but what looks drawn at random, unless that tells pages apart.

    Such a part is a session's in most sites. Where a map has states at several URLs that differ in nothing else, it
    names pages (commits): exploring takes pages for one when it has no meaning.

    Parameters
    ----------
    maps : URLs of the states of each map.

    >>> names = PageNames(["http://x/cart?sid=9f86d081884c7d65", "http://x/info/0a1b2c3d", "http://x/info/4e5f6a7b"])
    >>> names.of("http://x/cart?sid=0f1e2d3c4b5a6978"), names.of("http://x/info/8c9dae0f")
    ('http://x/cart?sid=*', 'http://x/info/8c9dae0f')
    """

    def __init__(self, *maps: Iterable[str]) -> None:
        self._telling: set[str] = set()
        for urls in maps:
            once = set[str]()
            for masked in map(untokened, set(urls)):
                (self._telling if masked in once else once).add(masked)

    def is_told(self, url: str) -> bool:
        """Whether what looks drawn at random in a URL names its page."""
        return untokened(url) in self._telling

    def of(self, url: str) -> str:
        """The name of the page."""
        masked = untokened(url)
        return url if masked in self._telling else masked
