"""Order of exploration: within a budget, novelty finds more kinds of pages than breadth, with any number of workers."""

import pytest

from bench.coverage_site import CoverageSite, kind_of
from tests.exploring import explore
from waygraph.index.graph.export import to_json

pytestmark = pytest.mark.extended

STATES = 40


@pytest.fixture(scope="module")
def site():
    with CoverageSite() as served:
        yield served


@pytest.fixture(scope="module")
def by_novelty(site):
    return explore(site.url, max_states=STATES, workers=4)


def kinds(capture):
    return {kind_of(node.url) for node in capture.graph.nodes.values()}


def exported(capture):
    return to_json(capture.site, 1, capture.graph, inherited=True, leads=capture.leads)


def test_the_map_does_not_depend_on_the_number_of_workers(site, by_novelty):
    alone = explore(site.url, max_states=STATES, workers=1)
    assert exported(alone) == exported(by_novelty)
    assert alone.report.pending == by_novelty.report.pending > 0


def test_novelty_finds_more_kinds_of_pages_than_breadth(site, by_novelty):
    breadth = explore(site.url, max_states=STATES, order="breadth")
    assert len(breadth.graph) == len(by_novelty.graph) == STATES
    assert len(kinds(by_novelty)) >= 1.5 * len(kinds(breadth))
