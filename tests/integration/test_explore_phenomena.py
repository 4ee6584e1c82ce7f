"""Does the explorer see everything that a person could click, whatever a page is made of?"""

from dataclasses import replace

import pytest

from index.graph import site_key
from tests.conftest import explore
from tests.sites.answers import Result, edge, judge, shows, site_pages, states, table
from tests.sites.phenomena import AREAS
from tests.sites.phenomena.documents import FOREIGN_FRAME_IN_SCOPE
from tests.sites.server import FixtureServer

#: What the explorer does not find yet, and why. Strict: whoever makes one of these work takes it out.
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


def test_every_gap_that_is_listed_is_one_of_the_answers():
    assert set(GAPS) <= set(EXPECTED)


@pytest.mark.parametrize(
    "expect",
    [
        pytest.param(key, marks=[pytest.mark.xfail(strict=True, reason=GAPS[key])] if key in GAPS else [])
        for key in EXPECTED
    ],
)
def test_exploring_finds_what_the_answer_says(results, expect):
    assert results[expect].seen, results[expect].instead


def alone(name, *answers, **settings):
    """What is missing of other answers when one area is explored under other settings."""
    (area,) = (replace(area, answers=answers) for area in AREAS if area.name == name)
    with FixtureServer({}) as other, FixtureServer({}) as site:
        site.pages.update(site_pages([area], name, other))
        if settings.pop("both_hosts", False):
            settings["scope_hosts"] = (site_key(other.url),)
        judged = judge([area], explore(site.url, depth=3, **settings), site, other)
    return {str(result.expect): result.instead for result in judged if not result.seen}


def test_search_forms_are_submitted_when_that_is_asked_for():
    assert alone("search-form", shows("search-results", by="Words"), submit_search=True) == {}


def test_cookie_banners_are_part_of_the_page_when_they_are_to_stay():
    kept = (edge("Tout accepter"), edge("Continuer sans accepter"), states("/banner/french", 2))
    assert alone("banner-french", *kept, cookie_banners=False) == {}


def test_frames_of_another_origin_are_looked_into_when_it_is_in_scope():
    assert alone("foreign-frame", *FOREIGN_FRAME_IN_SCOPE, both_hosts=True) == {}
