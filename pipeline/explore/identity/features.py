"""How do two looks differ in what they show, wherever it stands?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

from index.graph.tokens import is_token
from pipeline.browser.features import Features
from pipeline.browser.snapshot import MAX_SEGMENTS, Snapshot
from pipeline.explore.identity.templates import difference


def change(before: Features, after: Features) -> Features:
    """What to add to `before` to get `after`: counts may be negative, zeros are left out."""
    changed = Counter(after)
    changed.subtract(before)
    return Counter({feature: count for feature, count in changed.items() if count})


def without(found: Features, volatile: Iterable[str]) -> Features:
    """Features that are not volatile."""
    noise = set(volatile)
    return Counter({feature: count for feature, count in found.items() if feature not in noise})


def content_key(seen: Snapshot) -> str | None:
    """A name for everything that a look shows but its URL and its links; nothing when it was too long to be read."""
    if len(seen.segments) >= MAX_SEGMENTS or not seen.segments:
        return None
    digest = hashlib.md5("".join(seen.structure).encode())
    texts = [seen.title, *(part for s in seen.segments for part in (s.role, s.text))]
    names = [part for c in seen.candidates for part in (c.action.kind, c.action.role, c.action.name)]
    digest.update("\0".join((*texts, "\1", *names)).encode(errors="replace"))
    return digest.hexdigest()


def same_links(first: Snapshot, second: Snapshot, strip: Callable[[str], str]) -> bool:
    """Whether two looks with the same elements link to the same pages, but for what the two URLs differ in.

    A viewer of pictures without texts looks the same on each of them; its link to the next one does not. A session id
    that is new with every page is one value in all of its links.
    """
    where = difference(first.url, second.url)
    own = set(where.values) if where else set()
    drawn: dict[tuple[str, str], set[str]] = {}
    for a, b in zip(first.candidates, second.candidates, strict=True):
        one, other = strip(a.action.target), strip(b.action.target)
        if one == other:
            continue
        differing = difference(one, other)
        if differing is None:
            return False
        for pair in set(differing.values) - own:
            drawn.setdefault(pair, set()).add(one)
    if not drawn:
        return True
    ((pair, targets),) = drawn.items() if len(drawn) == 1 else ((("", ""), set()),)
    return len(targets) > 1 and all(map(is_token, pair))
