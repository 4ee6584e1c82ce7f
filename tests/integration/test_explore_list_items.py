"""The explorer finds items that only a listener of their list means, and entries that scrolling adds.

See `tests/sites/phenomena/rows.py` and `growing.py`.
"""

import pytest

from tests.exploring import explore
from tests.sites.answers import Result, judge, site_pages, table
from tests.sites.phenomena import LISTS
from tests.sites.server import FixtureServer

pytestmark = [pytest.mark.extended, pytest.mark.timeout(600)]  # the first test explores all areas


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Every answer, judged by one exploration of all areas."""
    with FixtureServer({}) as site:
        site.pages.update(site_pages(LISTS, "Lists"))
        judged = judge(LISTS, explore(site.url, depth=4), site)
        assert site.mutations == 0
    print(table(judged))  # noqa: T201 - pytest shows it with the first failure
    return {str(result.expect): result for result in judged}


@pytest.mark.parametrize("expect", [str(expect) for area in LISTS for expect in area.expected])
def test_exploring_finds_the_answer(results, expect):
    assert results[expect].seen, results[expect].instead
