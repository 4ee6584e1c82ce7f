"""The `nothing_matches` flag: whether the best score of a search is so low that probably no state is meant."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.core.schemas import Hit

#: Best score below which the encoder `text` reports that nothing matches. 5% of the answerable dev
#: questions of `bench/retrieval` score less: the threshold flags 14 of 266 questions with an answer, and 8 of 20
#: without one. `python -m bench.retrieval.reasoning` fits it; see "When nothing matches" in docs/retrieval.md.
TEXT_THRESHOLD = 0.719
#: The same for `text-large`: it flags 14 of the 267 questions with an answer, and 9 of the 20 without one.
TEXT_LARGE_THRESHOLD = 0.705

#: Thresholds by fingerprint of the encoder: scores of different encoders are not comparable.
THRESHOLDS: dict[str, float] = {
    "text-176d936a219460e0": TEXT_THRESHOLD,
    "text-large-ea782e89008327e6": TEXT_LARGE_THRESHOLD,
}


def nothing_matches(fingerprint: str, hits: Sequence[Hit]) -> bool | None:
    """Return whether the best hit scores below the encoder's threshold; None if the encoder has no threshold."""
    threshold = THRESHOLDS.get(fingerprint)
    return None if threshold is None else max((hit.score for hit in hits), default=float("-inf")) < threshold
