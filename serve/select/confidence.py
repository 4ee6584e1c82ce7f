"""Confidence in the first hit of a search: how often it is right by its margin over the second.

A margin of 0.3 over the second hit is rarely wrong. With a margin of 0.02 the second is nearly as likely: an agent
should look at several hits, or ask.
"""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.core.schemas import Hit

#: Least margin of the first hit over the second, and the share of dev questions of `bench/retrieval` with such a margin
#: whose first hit is right. `python -m bench.retrieval.reasoning` measures them; see "Confidence" in docs/retrieval.md.
TEXT_LEVELS = ((0.2, 0.89), (0.1, 0.73), (0.0, 0.39))
#: The same for maps of `text` whose states are described, of dev and test together, since the shares of dev alone
#: (0.97, 0.83, 0.52) are too high for test (`python -m bench.retrieval.with_model measure`).
DESCRIBED_TEXT_LEVELS = ((0.2, 0.96), (0.1, 0.79), (0.0, 0.47))
#: The same for `text-large`, at the same margins.
TEXT_LARGE_LEVELS = ((0.2, 0.91), (0.1, 0.54), (0.0, 0.49))

#: Levels by fingerprint of the encoder: scores of different encoders are not comparable.
LEVELS: dict[str, Sequence[tuple[float, float]]] = {
    "text-f6ca572c19837519": TEXT_LEVELS,
    "text-large-ae942ed659b3e492": TEXT_LARGE_LEVELS,
}
#: Levels of described maps, by the same.
DESCRIBED_LEVELS: dict[str, Sequence[tuple[float, float]]] = {"text-f6ca572c19837519": DESCRIBED_TEXT_LEVELS}


def confidence(fingerprint: str, hits: Sequence[Hit], *, described: bool = False) -> float | None:
    """Return how likely the first hit is right, if the site has what is searched for.

    Parameters
    ----------
    fingerprint
        Fingerprint of the encoder.
    hits
        The hits, best first.
    described
        Whether all hits are of maps whose states have generated descriptions.

    Returns
    -------
    float or None
        A share from 0 to 1; None for an encoder without levels, with fewer than two hits, and for hits that a
        cross-encoder ordered.
    """
    levels = (DESCRIBED_LEVELS if described else LEVELS).get(fingerprint)
    if levels is None or len(hits) < 2 or hits[0].reranked is not None:
        return None
    margin = hits[0].score - hits[1].score
    return next((share for least, share in levels if margin >= least), None)
