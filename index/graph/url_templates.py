"""Templates of URLs: what pages of one kind about different entities have in common in their addresses."""

from __future__ import annotations

from collections.abc import Iterator

from waygraph.index.graph.url_tokens import url_parts

#: What a template stands for, and the value that a URL has in its place. Equal templates compare equal.
Template = tuple[object, ...]
#: Segments at the end of a path that mean the same function also below other paths.
_SUFFIX = 2


def url_templates(url: str) -> Iterator[tuple[Template, str]]:
    """Yield the templates of a URL, each with the value that it leaves open.

    One for each path segment and query value, with that part left open, and one for what the path ends with, with all
    before it left open: `/projects/b/issues/gantt` has both `/projects/*/issues/gantt` and `*/issues/gantt`.

    >>> [value for _, value in url_templates("http://x.org/projects/b/issues/gantt")]
    ['projects', 'b', 'issues', 'gantt', 'projects/b']
    >>> dict(url_templates("http://x.org/p/a/edit")).keys() & dict(url_templates("http://x.org/p/b/edit")).keys()
    {('http://x.org', ('p', None, 'edit'), ())}
    """
    parts = url_parts(url)
    for place, segment in enumerate(parts.segments):
        if segment:
            yield (parts.host, (*parts.segments[:place], None, *parts.segments[place + 1 :]), parts.query), segment
    for place, (key, value) in enumerate(parts.query):
        if value:
            query = (*parts.query[:place], (key, None), *parts.query[place + 1 :])
            yield (parts.host, parts.segments, query), value
    ends = tuple(segment for segment in parts.segments if segment)
    if len(ends) >= _SUFFIX and not any(character.isdigit() for end in ends[-_SUFFIX:] for character in end):
        yield (parts.host, "*", ends[-_SUFFIX:], parts.keys), "/".join(ends[:-_SUFFIX])
