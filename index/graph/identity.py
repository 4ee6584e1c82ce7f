"""Canonical, process-independent ids of elements and states (WebNavigator 3.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable


def element_hash(xpath: str, frame: Iterable[str] = ()) -> str:
    """Return the MD5 (hex) of an element's full XPath, preceded by the XPaths of its frames.

    >>> element_hash("/html[1]/body[1]")
    '74c73e1a57ff9e37109eda52f9ec6076'
    """
    return hashlib.md5(" ||| ".join([*frame, xpath]).encode()).hexdigest()


def node_id(structure: Iterable[str], url: str) -> str:
    """Return the MD5 (hex) over the *sorted* distinct element hashes and the normalised URL.

    Sorting makes the id the same in every process. The reference implementation hashes `str(set)`, which depends on
    PYTHONHASHSEED.

    >>> node_id(["b", "a"], "http://x/") == node_id(["a", "b", "a"], "http://x/")
    True
    """
    # Sorting precedes the removal of duplicates: the input is usually sorted already, and a set would lose that order.
    elements = "".join(dict.fromkeys(sorted(structure)))
    return hashlib.md5(f"{elements}\n{url}".encode()).hexdigest()


def lead_id(url: str) -> str:
    """Return the id of the lead to a page (MD5, hex), from the page's normalised URL.

    It differs from the id of every state at that URL.

    >>> lead_id("http://x/") == node_id([], "http://x/")
    False
    """
    return hashlib.md5(f"lead\n{url}".encode()).hexdigest()


def change_digest(before: Collection[str], after: Collection[str]) -> str:
    """Return a digest of the elements added and removed between two structures; empty if there are none.

    The digest has 32 hex characters. Elements that both structures have, or neither, do not affect it: one more
    advertisement on a page does not change what opening its menu adds.

    >>> change_digest(["page", "ad"], ["page", "ad", "menu"]) == change_digest(["page"], ["menu", "page"]) != ""
    True
    """
    removed, added = {*before} - {*after}, {*after} - {*before}
    if not removed and not added:
        return ""
    return hashlib.md5(f"{''.join(sorted(removed))}\n{''.join(sorted(added))}".encode()).hexdigest()


def similarity(a: Iterable[str], b: Iterable[str]) -> float:
    """Return the Jaccard similarity of two structures, in [0, 1]; two empty structures are equal.

    >>> similarity(["x", "y"], ["y", "z"])
    0.3333333333333333
    """
    first, second = set(a), set(b)
    union = len(first | second)
    return len(first & second) / union if union else 1.0
