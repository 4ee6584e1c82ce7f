"""The explorer finds every element that a user could operate, for each page phenomenon of `tests/sites/phenomena`."""

from dataclasses import replace

import pytest

from tests.exploring import explore
from tests.sites.answers import Result, edge, judge, never, site_pages, skipped, states, table
from tests.sites.phenomena import AREAS
from tests.sites.phenomena.documents import FOREIGN_FRAME_IN_SCOPE
from tests.sites.server import FixtureServer
from waygraph.core.urls import site_key

pytestmark = pytest.mark.timeout(600)  # the first test explores all areas

#: What the explorer does not find yet, and why. Strict: an entry that starts to work must be removed.
GAPS: dict[str, str] = {}

EXPECTED = [str(expect) for area in AREAS for expect in area.expected]


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Every answer, judged by one exploration of all areas."""
    with FixtureServer({}) as other, FixtureServer({}) as site:
        site.pages.update(site_pages(AREAS, "Phenomena", other))
        capture = explore(site.url, depth=4)
        judged = judge(AREAS, capture, site, other)
        assert site.mutations == other.mutations == 0
    print(table(judged))  # noqa: T201 - pytest shows it with the first failure
    return {str(result.expect): result for result in judged}


def test_every_known_gap_is_one_of_the_answers():
    assert set(GAPS) <= set(EXPECTED)


@pytest.mark.parametrize(
    "expect",
    [
        pytest.param(key, marks=[pytest.mark.xfail(strict=True, reason=GAPS[key])] if key in GAPS else [])
        for key in EXPECTED
    ],
)
def test_exploring_finds_the_answer(results, expect):
    assert results[expect].seen, results[expect].instead


def alone(name, *answers, **settings):
    """Return the missing answers when one area is explored under other settings."""
    (area,) = (replace(area, answers=answers) for area in AREAS if area.name == name)
    with FixtureServer({}) as other, FixtureServer({}) as site:
        site.pages.update(site_pages([area], name, other))
        if settings.pop("both_hosts", False):
            settings["scope_hosts"] = (site_key(other.url),)
        judged = judge([area], explore(site.url, depth=3, **settings), site, other)
    return {str(result.expect): result.instead for result in judged if not result.seen}


def test_search_forms_are_not_submitted_when_that_is_disabled():
    answers = (never("/search/results?q=fixture"), skipped("form_get", by="Find it"), states("/search", 1))
    assert alone("search-form", *answers, submit_search=False) == {}


def test_cookie_banners_are_part_of_the_page_when_dismissal_is_disabled():
    kept = (edge("Tout accepter"), edge("Continuer sans accepter"), states("/banner/french", 2))
    assert alone("banner-french", *kept, cookie_banners=False) == {}


def test_cross_origin_frames_are_captured_when_their_host_is_in_scope():
    assert alone("foreign-frame", *FOREIGN_FRAME_IN_SCOPE, both_hosts=True) == {}
