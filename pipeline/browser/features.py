"""What does a page show, wherever it stands? Texts and elements without their positions."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

from index.graph.tokens import untokened
from pipeline.browser.snapshot import Snapshot

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
