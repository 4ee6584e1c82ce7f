"""Which URLs could name pages of one kind? What varies between them is a number, a token, a date or a word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, urlsplit

_HEX = re.compile(r"(?:0x)?[0-9a-f]{8,}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9]{12,}")
_SWITCH = re.compile(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")
_SUFFIX = re.compile(r"\.[a-z]{2,5}$")
_YEAR = r"(?:1[5-9]|2\d|30)\d\d"
_DATE = re.compile(rf"(?<!\d){_YEAR}[-_./]?(?:0[1-9]|1[0-2]|[1-9])(?:[-_./]?[0-3]?\d)?(?!\d)")
_DATE_PATH = re.compile(rf"/{_YEAR}(?:/(?:0?[1-9]|1[0-2]))+(?:/|$)")
_DATE_KEYS = ("date", "day", "month", "year", "week")


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


def is_identifier(text: str) -> bool:
    """Whether `text` numbers a thing rather than naming one: digits, `item-17`, a date, a token.

    >>> [is_identifier(t) for t in ("17", "item-17.html", "2024-05-12", "orders", "top-10-tips")]
    [True, True, True, False, False]
    """
    if "/" in text:
        return False  # an address to come back to
    stem = _SUFFIX.sub("", text)
    return is_token(text) or (any(c.isdigit() for c in stem) and len(re.findall(r"[^\W\d_]+", stem)) <= 1)


def is_date(url: str) -> bool:
    """Whether a URL names a day, a week, a month or a year."""
    shape = shape_of(url)
    path = "/" + "/".join(shape.segments)
    if _DATE_PATH.search(path) or any(_DATE.fullmatch(segment) for segment in shape.segments):
        return True
    return any(
        _DATE.fullmatch(value) or (key.lower() in _DATE_KEYS and value[:1].isdigit()) for key, value in shape.query
    )


def mask(text: str) -> str:
    """A segment or value with what numbers a thing replaced: `item-17.html` -> `item-#.html`, tokens -> `*`."""
    return "*" if is_token(text) else re.sub(r"\d+", "#", text)


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


def content_template(url: str) -> str:
    """What URLs of equal content must share to be one page: all but tokens, and query values that number nothing.

    >>> content_template("http://x/orders/17/edit?sort=name") == content_template("http://x/orders/17/edit")
    True
    >>> content_template("http://x/orders?id=17") == content_template("http://x/orders?id=18")
    False
    """
    shape = shape_of(url)
    numbers = sorted(pair for pair in shape.query if is_identifier(pair[1]) and not is_token(pair[1]))
    return repr((shape.host, ["*" if is_token(segment) else segment for segment in shape.segments], numbers))


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two URLs of one shape differ: `path` by position, `query` by name, each with both values."""

    path: tuple[tuple[int, str, str], ...]
    query: tuple[tuple[str, str, str], ...]

    @property
    def values(self) -> list[tuple[str, str]]:
        """The two values at every place that differs."""
        return [(a, b) for _, a, b in (*self.path, *self.query)]


def difference(first: str, second: str) -> Difference | None:
    """Where two URLs differ, or nothing when they are not of one shape (host, length of the path, parameter names)."""
    a, b = shape_of(first), shape_of(second)
    if a.host != b.host or len(a.segments) != len(b.segments) or a.keys != b.keys:
        return None
    return Difference(
        tuple((i, x, y) for i, (x, y) in enumerate(zip(a.segments, b.segments, strict=True)) if x != y),
        tuple((key, x, y) for (key, x), (_, y) in zip(a.query, b.query, strict=True) if x != y),
    )
