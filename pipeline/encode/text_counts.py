"""Counts of texts over the states of a site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from waygraph.index.graph import HIDDEN_ROLE, Observation, SegmentCounts


def clean(text: str) -> str:
    """Return `text` with single spaces, the form in which texts are compared and encoded."""
    return " ".join(text.split())


def count_segments(observations: Iterable[Observation]) -> SegmentCounts:
    """Count states per segment text, states per title, and collect the texts that states of one URL share."""
    states = 0
    texts: Counter[str] = Counter()
    titles: Counter[str] = Counter()
    by_url: dict[str, list[set[str]]] = {}
    for observation in observations:
        states += 1
        shown = {text for s in observation.segments if s.role != HIDDEN_ROLE and (text := clean(s.text))}
        texts.update(shown | {clean(s.text) for s in observation.segments if s.role == HIDDEN_ROLE})
        titles[clean(observation.title)] += 1
        by_url.setdefault(observation.url, []).append(shown)
    shared = {url: _shown_by_most(group) for url, group in by_url.items() if len(group) > 1}
    return SegmentCounts(states, texts, titles, shared)


def _shown_by_most(group: list[set[str]]) -> frozenset[str]:
    counts = Counter(text for shown in group for text in shown)
    return frozenset(text for text, states in counts.items() if 2 * states > len(group))
