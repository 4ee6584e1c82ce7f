"""Confidence depends on the lead of the first hit over the second, and on the encoder."""

import pytest

from waygraph.core.schemas import Hit
from waygraph.serve.select.confidence import DESCRIBED_LEVELS, LEVELS, confidence
from waygraph.serve.select.no_match import DESCRIBED_THRESHOLDS, THRESHOLDS


def hits(*scores: float) -> list[Hit]:
    return [Hit(rank=i, node_id=str(i), url="u", title="t", score=score) for i, score in enumerate(scores, start=1)]


@pytest.mark.parametrize("fingerprint", LEVELS)
def test_a_larger_lead_over_the_second_hit_means_more_confidence(fingerprint):
    found = [confidence(fingerprint, hits(1.0, 1.0 - lead, 0.1)) for lead in (0.0, 0.05, 0.15, 0.5)]
    assert found == sorted(found)
    assert 0 < found[0] == found[1] < found[2] < found[3] < 1


@pytest.mark.parametrize("fingerprint", LEVELS)
def test_there_is_no_confidence_without_a_second_hit(fingerprint):
    assert confidence(fingerprint, []) is None
    assert confidence(fingerprint, hits(1.0)) is None


def test_an_encoder_that_was_not_measured_has_no_confidence():
    assert confidence("text-0000000000000000", hits(1.0, 0.5)) is None


@pytest.mark.parametrize("fingerprint", LEVELS)
def test_levels_are_ordered_and_cover_every_lead(fingerprint):
    leads = [least for least, _ in LEVELS[fingerprint]]
    assert leads == sorted(leads, reverse=True)
    assert leads[-1] == 0


def test_an_encoder_with_levels_has_a_threshold_too():
    assert LEVELS.keys() == THRESHOLDS.keys()
    assert {fingerprint.rpartition("-")[0] for fingerprint in LEVELS} == {"text", "text-large"}
    assert DESCRIBED_LEVELS.keys() == DESCRIBED_THRESHOLDS.keys()


@pytest.mark.parametrize("fingerprint", DESCRIBED_LEVELS)
def test_the_first_hit_in_a_described_map_is_right_more_often(fingerprint):
    for lead in (0.0, 0.15, 0.5):
        found = hits(1.0, 1.0 - lead)
        assert confidence(fingerprint, found, described=True) > confidence(fingerprint, found)
