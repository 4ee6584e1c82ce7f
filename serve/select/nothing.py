"""Does anything on the site answer the question? A score is only as good as what is known of its encoder's scores."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.schemas import Hit

#: By fingerprint of the encoder, the score below which the best state counts as no answer: 5% of the answerable dev
#: questions of `bench/retrieval` score less. Fitted by `python -m bench.retrieval.reasoning`, see docs/retrieval.md.
THRESHOLDS: dict[str, float] = {"text-9f86933f95e0a27e": 0.609}


def nothing_matches(fingerprint: str, hits: Sequence[Hit]) -> bool | None:
    """Whether the best hit scores so low that most likely no state is meant; `None`: nothing is known of the scores."""
    threshold = THRESHOLDS.get(fingerprint)
    return None if threshold is None else max((hit.score for hit in hits), default=float("-inf")) < threshold
