"""Which page state is this? Canonical, process-independent names for elements and states (WebNavigator 3.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable


def element_hash(xpath: str, frame: Iterable[str] = ()) -> str:
    """MD5 (hex) of an element's full XPath, with the XPaths of its frames in front.

    >>> element_hash("/html[1]/body[1]")
    '74c73e1a57ff9e37109eda52f9ec6076'
    """
    return hashlib.md5(" ||| ".join([*frame, xpath]).encode()).hexdigest()


def node_id(structure: Iterable[str], url: str) -> str:
    """MD5 (hex) over the *sorted* distinct element hashes and the normalised URL.

    Sorting is what makes the id the same in every process: the reference implementation hashes `str(set)`, which
    depends on PYTHONHASHSEED.

    >>> node_id(["b", "a"], "http://x/") == node_id(["a", "b", "a"], "http://x/")
    True
    """
    # Sorted before duplicates go: most often it is sorted already, which a set would forget.
    elements = "".join(dict.fromkeys(sorted(structure)))
    return hashlib.md5(f"{elements}\n{url}".encode()).hexdigest()


def change_digest(before: Collection[str], after: Collection[str]) -> str:
    """Names which elements came and which went between two structures: 32 hex characters, none when none did.

    What both structures have, or neither, does not matter: an advertisement more on a page changes nothing about what
    opening its menu adds.

    >>> change_digest(["page", "ad"], ["page", "ad", "menu"]) == change_digest(["page"], ["menu", "page"]) != ""
    True
    """
    gone, come = {*before} - {*after}, {*after} - {*before}
    if not gone and not come:
        return ""
    return hashlib.md5(f"{''.join(sorted(gone))}\n{''.join(sorted(come))}".encode()).hexdigest()


def similarity(a: Iterable[str], b: Iterable[str]) -> float:
    """Jaccard similarity of two structures, in [0, 1]; two empty structures are equal.

    >>> similarity(["x", "y"], ["y", "z"])
    0.3333333333333333
    """
    first, second = set(a), set(b)
    union = len(first | second)
    return len(first & second) / union if union else 1.0
