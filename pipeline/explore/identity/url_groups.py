"""Groups of URLs whose pages are probably of one kind, for trap detection. Pure functions over URLs."""

from __future__ import annotations

from functools import lru_cache

from waygraph.index.graph.url_tokens import url_parts
from waygraph.pipeline.explore.identity.templates import is_identifier, mask_identifier
from waygraph.pipeline.explore.identity.thresholds import MAX_SEGMENT_REPEATS, MAX_URL_LENGTH

#: Query parameters that select one of many pages behind one path, if their value is a word.
ROUTING_PARAMETERS = frozenset({
    "page", "p", "action", "act", "do", "op", "cmd", "route", "r", "title", "mod", "module", "section", "controller",
    "option", "task", "path", "topic", "content",
})  # fmt: skip


@lru_cache(maxsize=65_536)
def group_of(url: str) -> str:
    """Return the group of a URL: host, path and routing parameters, with identifiers masked and repetitions collapsed.

    >>> group_of("http://x/calendar/2024/05/12?view=week")
    'http://x/calendar/#'
    >>> group_of("http://x/index.php?id=17&page=orders"), group_of("http://x/a/b/a/b")
    ('http://x/index.php?page=orders', 'http://x/a/b')
    """
    parts = url_parts(url)
    masked = [mask_identifier(segment) if is_identifier(segment) else segment for segment in parts.segments if segment]
    collapsed: list[str] = []
    for segment in masked:
        is_number = segment in {"#", "*"} or set(segment) <= set("#-_.")
        if is_number and collapsed and collapsed[-1] == "#":
            continue
        collapsed.append("#" if is_number else segment)
        # a/b/a/b -> a/b
        for length in range(1, len(collapsed) // 2 + 1):
            if collapsed[-length:] == collapsed[-2 * length : -length]:
                del collapsed[-length:]
                break
    routes = [f"{key}={value}" for key, value in parts.query if key in ROUTING_PARAMETERS and not is_identifier(value)]
    return "/".join((parts.host, *collapsed)) + ("?" + "&".join(sorted(routes)) if routes else "")


def folder_of(group: str) -> str:
    """Return a group with the last segment of its path open, if the path has several segments."""
    path = group.partition("?")[0]
    return path.rpartition("/")[0] + "/*" if path.count("/") > 3 else group


def query_kind(url: str) -> str:
    """Return the query of a URL with its identifiers masked."""
    return "&".join(
        f"{key}={mask_identifier(value) if is_identifier(value) else value}" for key, value in url_parts(url).query
    )


def section_of(url: str) -> str:
    """Return the host and the first path segment: filters that are written as path segments come after it."""
    parts = url_parts(url)
    return f"{parts.host}/{parts.segments[0] if parts.segments else ''}/**"


def implausible_url(url: str) -> str:
    """Return why no page that people are meant to find has this URL; empty if it may be such a page."""
    if len(url) > MAX_URL_LENGTH:
        return f"the URL has {len(url)} characters"
    segments = [segment for segment in url_parts(url).segments if segment]
    for length in range(1, len(segments) // MAX_SEGMENT_REPEATS + 1):
        for start in range(len(segments) - MAX_SEGMENT_REPEATS * length + 1):
            piece = segments[start : start + length]
            run = segments[start : start + MAX_SEGMENT_REPEATS * length]
            if run == piece * MAX_SEGMENT_REPEATS and not all(segment.isdigit() for segment in piece):
                return f"/{'/'.join(piece)} is repeated {MAX_SEGMENT_REPEATS} times in a row"
    return ""
