"""Groups of alike pages: states of one depth whose URLs differ in one place and whose elements are mostly equal."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

from waygraph.index.graph import Node, similarity

#: A group has at least this many states; fewer are as easily shown one by one.
LEAST_STATES = 4
#: Least similarity of the elements of a state to those of the first state of its group.
LEAST_SIMILARITY = 0.6

_NUMBER = re.compile(r"\d+|[0-9a-fA-F-]{16,}")


def url_pattern(url: str) -> str:
    """Return a URL without what distinguishes pages of a kind: numbers, the last path segment, values of parameters.

    >>> url_pattern("http://x/p/lamp?sort=up")
    '/p/*?sort'
    >>> url_pattern("http://x/orders/17/edit")
    '/orders/*/*'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    *pieces, _ = (parts.path or "/").split("/")
    path = "/".join([*("*" if _NUMBER.fullmatch(piece) else piece for piece in pieces), "*"])
    keys = sorted({key for key, _ in parse_qsl(parts.query, keep_blank_values=True)})
    return f"{path}?{'&'.join(keys)}" if keys else path


def group_alike(nodes: Iterable[Node]) -> list[tuple[str, list[str]]]:
    """Group the alike states of a map.

    Parameters
    ----------
    nodes
        The states. A group is compared with its first state only, so their order matters.

    Returns
    -------
    list of (str, list of str)
        For each group its URL pattern and the ids of its states; at least `LEAST_STATES`.
    """
    buckets: defaultdict[tuple[int, str], list[list[Node]]] = defaultdict(list)
    for node in nodes:
        groups = buckets[node.depth, url_pattern(node.url)]
        for group in groups:
            if similarity(group[0].structure, node.structure) >= LEAST_SIMILARITY:
                group.append(node)
                break
        else:
            groups.append([node])
    return [
        (pattern, [node.id for node in group])
        for (_, pattern), groups in buckets.items()
        for group in groups
        if len(group) >= LEAST_STATES
    ]
