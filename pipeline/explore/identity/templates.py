"""Which URLs could name pages of one kind? What varies between them is a number, a token, a date or a word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from index.graph.tokens import is_token, shape_of

_SUFFIX = re.compile(r"\.[a-z]{2,5}$")
_YEAR = r"(?:1[5-9]|2\d|30)\d\d"
_DATE = re.compile(rf"(?<!\d){_YEAR}[-_./]?(?:0[1-9]|1[0-2]|[1-9])(?:[-_./]?[0-3]?\d)?(?!\d)")
_DATE_PATH = re.compile(rf"/{_YEAR}(?:/(?:0?[1-9]|1[0-2]))+(?:/|$)")
_DATE_KEYS = ("date", "day", "month", "year", "week")


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
