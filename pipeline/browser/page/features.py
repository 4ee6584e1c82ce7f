"""Features of a page: hashes of its texts and elements, independent of their positions."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache

from waygraph.index.graph import HIDDEN_ROLE, Observation
from waygraph.index.graph.url_tokens import mask_random_tokens
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot

#: Feature -> how often it occurs.
Features = Counter[str]

_LETTER = re.compile(r"[^\W\d_]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def short_hash(*parts: str) -> str:
    """Hash `parts` to 12 hex characters, enough to distinguish the elements of one page."""
    return hashlib.md5("\0".join(parts).encode(errors="replace")).hexdigest()[:12]


def mask_numbers(text: str) -> str:
    """Replace the numbers in a text by `#`, because clocks and counters change."""
    return _NUMBER.sub("#", text)


@lru_cache(maxsize=16_384)  # most texts of a page are also on the next one
def text_feature(role: str, text: str) -> str:
    """Return the feature of a text, with numbers masked."""
    return short_hash("t", role, mask_numbers(text))


def candidate_feature(candidate: Candidate) -> str:
    """Return the feature of an element, with numbers in its name and random tokens in its target masked."""
    action = candidate.action
    return short_hash("c", action.kind, action.role, mask_numbers(action.name), mask_random_tokens(action.target))


def text_features(page: Snapshot | Observation) -> Features:
    """Count the features of the visible texts, except texts without letters: bars, stars and digits come and go."""
    shown = (s for s in page.segments if s.role != HIDDEN_ROLE)
    return Counter(text_feature(s.role, s.text) for s in shown if _LETTER.search(s.text))


def features(snapshot: Snapshot) -> Features:
    """Count the features of texts and elements, see `text_features` and `candidate_feature`.

    Rows that a list must be scrolled to are excluded: lists in a caller's page are not scrolled for a snapshot.
    """
    counts = text_features(snapshot)
    counts.update(candidate_feature(c) for c in snapshot.candidates if not c.action.needs_scrolling)
    return counts
