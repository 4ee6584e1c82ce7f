"""The explorer triggers every kind of event handler, and none of them changes anything at the server."""

import pytest

from tests.exploring import explore
from tests.sites.answers import Result, judge, site_pages, table
from tests.sites.handlers import AREAS
from tests.sites.server import FixtureServer

#: What the explorer does not find yet, and why. Strict: an entry that starts to work must be removed.
GAPS = {
    "touchstart | shows | touchstart-property | property touchstart": "no such property without a touch screen",
}

EXPECTED = [str(expect) for area in AREAS for expect in area.expected]


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Every answer, judged by one exploration of all areas."""
    with FixtureServer({}) as site:
        site.pages.update(site_pages(AREAS, "Handlers"))
        judged = judge(AREAS, explore(site.url, depth=4), site)
        assert site.mutations == 0
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
