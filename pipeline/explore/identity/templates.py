"""URL templates: which URLs may name pages of one kind, and the values in which they differ."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waygraph.core.urls import is_random_token
from waygraph.index.graph.url_tokens import UrlParts, url_parts

_SUFFIX = re.compile(r"\.[a-z]{2,5}$")
#: The file that a server shows for a folder, and the suffix that it may leave out.
_INDEX = re.compile(r"(?:index|default)(?:\.[a-z]{2,5})?", re.IGNORECASE)
_PAGE_SUFFIX = re.compile(r"\.(?:html?|php|aspx?)$", re.IGNORECASE)
_YEAR = r"(?:1[5-9]|2\d|30)\d\d"
_DATE = re.compile(rf"(?<!\d){_YEAR}[-_./]?(?:0[1-9]|1[0-2]|[1-9])(?:[-_./]?[0-3]?\d)?(?!\d)")
_DATE_PATH = re.compile(rf"/{_YEAR}(?:/(?:0?[1-9]|1[0-2]))+(?:/|$)")
_DATE_KEYS = ("date", "day", "month", "year", "week")


def is_identifier(text: str) -> bool:
    """Return whether a path segment or query value numbers an item: digits, `item-17`, a date, a random token.

    Texts with a slash are not identifiers: they are addresses to return to, as in `?next=/orders/17`.

    >>> [is_identifier(t) for t in ("17", "item-17.html", "2024-05-12", "orders", "top-10-tips")]
    [True, True, True, False, False]
    """
    if "/" in text:
        return False
    stem = _SUFFIX.sub("", text)
    return is_random_token(text) or (any(c.isdigit() for c in stem) and len(re.findall(r"[^\W\d_]+", stem)) <= 1)


def is_date(url: str) -> bool:
    """Return whether a URL names a day, a week, a month or a year."""
    parts = url_parts(url)
    path = "/" + "/".join(parts.segments)
    if _DATE_PATH.search(path) or any(_DATE.fullmatch(segment) for segment in parts.segments):
        return True
    return any(
        _DATE.fullmatch(value) or (key.lower() in _DATE_KEYS and value[:1].isdigit()) for key, value in parts.query
    )


def mask_identifier(text: str) -> str:
    """Return a segment or value with its numbers as `#`, as in `item-#.html`, or `*` for a random token."""
    return "*" if is_random_token(text) else re.sub(r"\d+", "#", text)


def content_template(url: str) -> str:
    """Return what the URLs of two pages with equal content must share for the pages to be one.

    That is everything but random tokens, query values that do not number an item, and how a folder is written.

    >>> content_template("http://x/orders/17/edit?sort=name") == content_template("http://x/orders/17/edit")
    True
    >>> content_template("http://x/docs/index.html") == content_template("http://x/docs/") == content_template("http://x/docs")
    True
    >>> content_template("http://x/orders?id=17") == content_template("http://x/orders?id=18")
    False
    """
    parts = url_parts(url)
    return repr((parts.host, *_page_of(parts)))


def _page_of(parts: UrlParts) -> tuple[list[str], list[tuple[str, str]]]:
    """Return path and query values by which a URL names a page, see `content_template`."""
    numbers = sorted(pair for pair in parts.query if is_identifier(pair[1]) and not is_random_token(pair[1]))
    segments = ["*" if is_random_token(segment) else segment for segment in parts.segments if segment]
    if segments and _INDEX.fullmatch(segments[-1]):
        segments.pop()
    elif segments:
        segments[-1] = _PAGE_SUFFIX.sub("", segments[-1])
    return segments, numbers


def is_own_address(canonical: str, first: str, second: str) -> bool:
    """Return whether the canonical URL that two pages name is one of theirs, or both of theirs without their queries.

    Many sites name their start page on all pages. Hosts are not compared: a copy of a site names the original.

    >>> is_own_address("https://x/lamp", "http://x/lamp", "http://x/sale/lamp?from=mail")
    True
    >>> is_own_address("http://x/docs/", "http://x/docs", "http://x/manual")
    True
    >>> is_own_address("http://x/lamp", "http://x/lamp?from=1", "http://x/lamp?from=2")
    True
    >>> is_own_address("http://x/", "http://x/photo/1", "http://x/photo/2")
    False
    """
    own, *others = (_page_of(url_parts(url)) for url in (canonical, first, second))
    return own in others or (not own[1] and all(segments == own[0] for segments, _ in others))


@dataclass(frozen=True, slots=True)
class UrlDifference:
    """Differing values of two URLs of one shape.

    Attributes
    ----------
    path
        Index of each differing path segment, with the value in the first and in the second URL.
    query
        Name of each differing query parameter, with the value in the first and in the second URL.
    """

    path: tuple[tuple[int, str, str], ...]
    query: tuple[tuple[str, str, str], ...]

    @property
    def values(self) -> list[tuple[str, str]]:
        """Pairs of differing values, of the path first."""
        return [(a, b) for _, a, b in (*self.path, *self.query)]


def url_difference(first: str, second: str) -> UrlDifference | None:
    """Return where two URLs differ; None if they have another host, path length or other parameter names."""
    a, b = url_parts(first), url_parts(second)
    if a.host != b.host or len(a.segments) != len(b.segments) or a.keys != b.keys:
        return None
    return UrlDifference(
        tuple((i, x, y) for i, (x, y) in enumerate(zip(a.segments, b.segments, strict=True)) if x != y),
        tuple((key, x, y) for (key, x), (_, y) in zip(a.query, b.query, strict=True) if x != y),
    )
