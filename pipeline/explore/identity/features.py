"""Differences between two snapshots in what they show, independent of positions on the page."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

from waygraph.core.urls import is_random_token, is_route
from waygraph.index.graph.url_tokens import within_page
from waygraph.pipeline.browser.page.features import Features
from waygraph.pipeline.browser.page.snapshot import MAX_SEGMENTS, Snapshot
from waygraph.pipeline.explore.identity.templates import url_difference


def feature_change(before: Features, after: Features) -> Features:
    """Return the counts to add to `before` to get `after`: negative where features disappeared, no zeros."""
    change = Counter(after)
    change.subtract(before)
    return Counter({feature: count for feature, count in change.items() if count})


def without_volatile(features: Features, volatile: Iterable[str]) -> Features:
    """Return the features that are not volatile, with their counts."""
    noise = set(volatile)
    return Counter({feature: count for feature, count in features.items() if feature not in noise})


def content_key(snapshot: Snapshot) -> str | None:
    """Return a hash of the structure, title, texts and element names of a snapshot, without its URL and links.

    None if the page has no text, or so many segments that not all were read. The hash is MD5 in hex.
    """
    if len(snapshot.segments) >= MAX_SEGMENTS or not snapshot.segments:
        return None
    digest = hashlib.md5("".join(snapshot.structure).encode())
    texts = [snapshot.title, *(part for s in snapshot.segments for part in (s.role, s.text))]
    names = [part for c in snapshot.candidates for part in (c.action.kind, c.action.role, c.action.name)]
    digest.update("\0".join((*texts, "\1", *names)).encode(errors="replace"))
    return digest.hexdigest()


def have_same_links(first: Snapshot, second: Snapshot, strip: Callable[[str], str]) -> bool:
    """Return whether two snapshots with equal elements link to the same pages.

    Two kinds of difference are ignored: the difference between the two page URLs, and a random value that all links of
    a page share (a session id that is new with every page). Links of both pages to one part of themselves are equal
    (`/` and `/?id=start` with a link to `#news`). Without texts, a picture viewer looks the same on every picture; only
    its link to the next picture differs.

    Parameters
    ----------
    first
        Snapshot of a page.
    second
        Snapshot with the same elements in the same order.
    strip
        Removes the volatile parts of a URL.

    Returns
    -------
    bool
        False if any link differs in another value.
    """
    page_difference = url_difference(first.url, second.url)
    ignored = set(page_difference.values) if page_difference else set()
    targets_by_pair: dict[tuple[str, str], set[str]] = {}
    for a, b in zip(first.candidates, second.candidates, strict=True):
        target, other = strip(a.action.target), strip(b.action.target)
        if target == other or _is_same_part(a.action.target, first.raw_url, b.action.target, second.raw_url):
            continue
        differing = url_difference(target, other)
        if differing is None:
            return False
        for pair in set(differing.values) - ignored:
            targets_by_pair.setdefault(pair, set()).add(target)
    if not targets_by_pair:
        return True
    if len(targets_by_pair) > 1:
        return False
    ((pair, targets),) = targets_by_pair.items()
    return len(targets) > 1 and all(map(is_random_token, pair))


def _is_same_part(target: str, page_url: str, other: str, other_page_url: str) -> bool:
    """Return whether two links lead to the part of their own page that has one name. Routes of scripts are no parts."""
    part = within_page(target, page_url)
    return part == within_page(other, other_page_url) and part.startswith("#") and not is_route(part[1:])
