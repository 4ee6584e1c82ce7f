"""What does a page show, wherever it stands? Texts and elements without their positions, and how two looks differ."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable

from pipeline.browser.snapshot import MAX_SEGMENTS, Snapshot
from pipeline.explore.identity.templates import difference, is_token, untokened

Features = Counter[str]

_LETTER = re.compile(r"[^\W\d_]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def short_hash(*parts: str) -> str:
    """12 hex characters that stand for `parts`: enough to tell the things of one page apart."""
    return hashlib.md5("\0".join(parts).encode(errors="replace")).hexdigest()[:12]


def features(seen: Snapshot) -> Features:
    """Texts and elements of a look, each with its count.

    Numbers in texts and names are masked, as clocks and counters show them, and what looks drawn at random in links.
    Texts without letters are left out: bars, stars and digits come and go.
    """
    found: Features = Counter(
        short_hash("t", s.role, _NUMBER.sub("#", s.text)) for s in seen.segments if _LETTER.search(s.text)
    )
    for candidate in seen.candidates:
        action = candidate.action
        found[short_hash("c", action.kind, action.role, _NUMBER.sub("#", action.name), untokened(action.target))] += 1
    return found


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
    digest = hashlib.md5()
    for element in seen.structure:
        digest.update(element.encode())
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
