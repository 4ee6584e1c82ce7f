"""The `nothing_matches` flag depends on the best score and the threshold of the encoder."""

import pytest

from waygraph.core.schemas import Hit
from waygraph.serve.select.no_match import DESCRIBED_THRESHOLDS, THRESHOLDS, nothing_matches


def hits(*scores):
    return [
        Hit(rank=rank, node_id=f"{rank:032x}", url="http://x/", title="", score=score)
        for rank, score in enumerate(scores, start=1)
    ]


@pytest.mark.parametrize("fingerprint", THRESHOLDS)
def test_a_low_best_score_means_that_nothing_matches(fingerprint):
    threshold = THRESHOLDS[fingerprint]
    assert nothing_matches(fingerprint, hits(threshold - 0.01, threshold - 0.2)) is True
    assert nothing_matches(fingerprint, hits(threshold, threshold - 0.2)) is False
    assert nothing_matches(fingerprint, []) is True


def test_an_encoder_without_a_threshold_has_no_flag():
    assert nothing_matches("text-0000000000000000", hits(0.01)) is None
    assert nothing_matches("text-0000000000000000", []) is None


@pytest.mark.parametrize("fingerprint", DESCRIBED_THRESHOLDS)
def test_described_maps_have_a_higher_threshold(fingerprint):
    between = hits((THRESHOLDS[fingerprint] + DESCRIBED_THRESHOLDS[fingerprint]) / 2)
    assert nothing_matches(fingerprint, between) is False
    assert nothing_matches(fingerprint, between, described=True) is True
