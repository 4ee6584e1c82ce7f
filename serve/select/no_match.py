"""The `nothing_matches` flag: whether the best score of a search is so low that probably no state is meant."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.core.schemas import Hit

#: Best score below which the encoder `text` reports that nothing matches. 5% of the answerable dev
#: questions of `bench/retrieval` score less: the threshold flags 14 of 266 questions with an answer, and 8 of 20
#: without one. `python -m bench.retrieval.reasoning` fits it; see "When nothing matches" in docs/retrieval.md.
TEXT_THRESHOLD = 0.719
#: The same for maps of `text` whose states are described: what a model writes about a page is closer to questions, so
#: scores are higher. It flags 14 of the 266 questions with an answer, and 12 of 20 without one
#: (`python -m bench.retrieval.with_model measure`).
DESCRIBED_TEXT_THRESHOLD = 0.946
#: The same for `text-large`: it flags 14 of the 267 questions with an answer, and 9 of the 20 without one.
TEXT_LARGE_THRESHOLD = 0.705

#: Thresholds by fingerprint of the encoder: scores of different encoders are not comparable.
THRESHOLDS: dict[str, float] = {
    "text-f6ca572c19837519": TEXT_THRESHOLD,
    "text-large-ae942ed659b3e492": TEXT_LARGE_THRESHOLD,
}
#: Thresholds of described maps, by the same.
DESCRIBED_THRESHOLDS: dict[str, float] = {"text-f6ca572c19837519": DESCRIBED_TEXT_THRESHOLD}


def nothing_matches(fingerprint: str, hits: Sequence[Hit], *, described: bool = False) -> bool | None:
    """Return whether the best hit scores so low that probably no state is meant.

    Parameters
    ----------
    fingerprint
        Fingerprint of the encoder.
    hits
        The hits.
    described
        Whether all hits are of maps whose states have generated descriptions.

    Returns
    -------
    bool or None
        None if there is no threshold for the encoder.
    """
    threshold = (DESCRIBED_THRESHOLDS if described else THRESHOLDS).get(fingerprint)
    return None if threshold is None else max((hit.score for hit in hits), default=float("-inf")) < threshold
