"""Exploring leaves every crawler trap after a few states and finds the rest of the site."""

import os
from collections import Counter

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer
from tests.sites.traps import ENDLESS, ENDLESS_SCRIPTS, HEAVY, LEGITIMATE, Area, trap_pages, trap_truth
from tests.sites.truth import measure

pytestmark = pytest.mark.extended

#: Quick to load, though they never rest: they can be explored with the traps.
RESTLESS = tuple(area for area in HEAVY if area.name in {"restless", "restless elements", "alerts"})
ROUTER = tuple(area for area in LEGITIMATE if area.name == "router")
PRODUCTS = tuple(area for area in LEGITIMATE if area.name == "products")
TRAPS = (*ENDLESS, *ENDLESS_SCRIPTS)


def explored(areas, **settings):
    with FixtureServer(trap_pages(areas)) as site:
        capture = explore(site.url, workers=2, **settings)
        return capture, measure(trap_truth(areas), capture.graph, capture.observations, site.url)


@pytest.fixture(scope="module")
def trapped():
    """One exploration of a site with all traps, deep enough to get lost in each."""
    return explored((*TRAPS, *RESTLESS, *ROUTER), depth=6)


@pytest.mark.parametrize("area", TRAPS, ids=lambda area: area.name)
def test_a_trap_costs_at_most_ten_states(trapped, area: Area):
    _, found = trapped
    inside = [extra for extra in found.extra if extra.startswith(area.start.rstrip("/"))]
    assert len(inside) + bool(area.real) <= 10, inside


def test_ordinary_pages_beside_traps_are_found_completely(trapped):
    _, found = trapped
    assert found.missing == (), str(found)
    assert found.missing_edges == (), str(found)


def test_pages_that_never_settle_are_single_states(trapped):
    _, found = trapped
    assert not [extra for extra in found.extra if extra.startswith(("/restless", "/alerts"))]


def test_skipped_elements_name_the_exhausted_group(trapped):
    capture, _ = trapped
    skips = [skip for skip in capture.report.skips if skip.reason == "trap"]
    assert capture.report.counters["skip/trap"] >= len(skips) > 0
    reasons = ("led only to more of the same group", "times in a row", "its relative links lead on")
    assert all(any(reason in skip.detail for reason in reasons) for skip in skips)


def test_points_of_a_chart_are_skipped_after_some_gave_nothing_new(trapped):
    capture, _ = trapped
    skips = [skip for skip in capture.report.skips if skip.reason == "alike"]
    assert len(skips) == capture.report.counters["skip/alike"]
    kinds = Counter(skip.element.partition(" ")[0] for skip in skips)
    assert kinds == {"hover": 60 - 6, "click": 60 - 5}  # under the pointer, the first point shows a number


def test_redirect_loop_is_a_failure_with_the_error_of_the_browser(trapped):
    capture, _ = trapped
    (loop,) = (failure for failure in capture.report.failures if "redirect loop" in failure.action)
    assert "ERR_TOO_MANY_REDIRECTS" in loop.reason


def test_sixty_products_are_one_state_in_skeleton_mode():
    capture, found = explored(PRODUCTS, depth=12, mode="skeleton")
    urls = [node.url.partition("/products")[2] for node in capture.graph.nodes.values() if "/products" in node.url]
    assert [url for url in urls if url.startswith("/")] == ["/0"]
    assert len(urls) == 11  # and ten listings that list them
    assert found.extra == ()


@pytest.mark.skipif(not os.environ.get("WAYGRAPH_HEAVY"), reason="longer than a minute: make soak-heavy")
@pytest.mark.parametrize("area", [area for area in HEAVY if area not in RESTLESS], ids=lambda area: area.name)
def test_page_of_great_weight_is_one_state_and_the_rest_is_found(area: Area):
    _, found = explored((area,), depth=3)
    assert found.missing == found.extra == found.missing_edges == (), str(found)
