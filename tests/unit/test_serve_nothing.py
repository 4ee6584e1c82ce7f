"""When is it said that nothing matches, and when is nothing said?"""

import pytest

from serve.select.nothing import THRESHOLDS, nothing_matches
from waygraph.schemas import Hit


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


def test_of_an_encoder_whose_scores_were_never_compared_nothing_is_said():
    assert nothing_matches("text-0000000000000000", hits(0.01)) is None
    assert nothing_matches("text-0000000000000000", []) is None
