"""Exploring pages that differ on every load finds their states and no others."""

import pytest

from tests.exploring import explore
from tests.sites.noise import noise_pages, noise_truth
from tests.sites.server import FixtureServer
from tests.sites.truth import measure

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def explored():
    """One exploration of all kinds of noise, and how well it agrees with the truth."""
    with FixtureServer(noise_pages()) as site:
        capture = explore(site.url, depth=3, workers=2)
        return capture, measure(noise_truth(), capture.graph, capture.observations, site.url)


def test_noise_makes_no_states(explored):
    _, found = explored
    assert found.extra == (), str(found)
    assert found.state_precision == 1.0


def test_menus_and_tabs_of_pages_with_noise_are_found(explored):
    _, found = explored
    assert found.missing == (), str(found)
    assert found.state_recall == 1.0


def test_edges_of_pages_with_noise_are_found(explored):
    capture, found = explored
    assert found.edge_recall >= 0.95, str(found)
    assert not capture.report.failures


def test_urls_with_tokens_are_merged_with_a_reason(explored):
    capture, _ = explored
    assert sum(n for name, n in capture.report.counters.items() if name.startswith("merge/")) > 0
