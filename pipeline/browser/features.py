"""What does a page show, wherever it stands? Texts and elements without their positions."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache

from index.graph import Observation
from index.graph.tokens import untokened
from pipeline.browser.snapshot import Candidate, Snapshot

Features = Counter[str]

_LETTER = re.compile(r"[^\W\d_]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def short_hash(*parts: str) -> str:
    """12 hex characters that stand for `parts`: enough to tell the things of one page apart."""
    return hashlib.md5("\0".join(parts).encode(errors="replace")).hexdigest()[:12]


def masked(text: str) -> str:
    """A text or a name without its numbers: clocks and counters show others each time."""
    return _NUMBER.sub("#", text)


@lru_cache(maxsize=16_384)  # most texts of a page are shown by the next one too
def text_feature(role: str, text: str) -> str:
    """The name of a text, numbers masked."""
    return short_hash("t", role, masked(text))


def candidate_feature(candidate: Candidate) -> str:
    """The name of an element, numbers in its name masked, and what looks drawn at random in where it leads."""
    action = candidate.action
    return short_hash("c", action.kind, action.role, masked(action.name), untokened(action.target))


def text_features(seen: Snapshot | Observation) -> Features:
    """The texts alone, each with its count. Those without letters are left out: bars, stars and digits come and go."""
    return Counter(text_feature(s.role, s.text) for s in seen.segments if _LETTER.search(s.text))


def features(seen: Snapshot) -> Features:
    """Texts and elements of a look, each with its count, see `text_features` and `candidate_feature`.

    Rows that a list has to be scrolled to are left out: in somebody else's page nobody scrolls to look.
    """
    found = text_features(seen)
    found.update(candidate_feature(c) for c in seen.candidates if not c.action.is_scrolled_to)
    return found
