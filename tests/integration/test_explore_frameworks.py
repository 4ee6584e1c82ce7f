"""The explorer finds all views and widgets of apps in current frameworks. Skipped where npm cannot fetch them."""

import pytest

from tests.exploring import explore
from tests.sites.answers import Area, Result, judge, site_pages, table
from tests.sites.frameworks import FRAMEWORKS, areas
from tests.sites.frameworks.packages import PackagesMissing, fetch
from tests.sites.server import FixtureServer

pytestmark = pytest.mark.extended

#: What the explorer does not find yet, by framework, and why. Strict: an entry that starts to work must be removed.
GAPS: dict[str, dict[str, str]] = {}


@pytest.fixture(scope="module")
def all_areas(pytestconfig) -> tuple[Area, ...]:
    """The apps of all frameworks, on packages that stay in pytest's cache folder."""
    try:
        return areas(fetch(pytestconfig.cache.mkdir("npm-packages")))
    except PackagesMissing as error:
        pytest.skip(f"no frameworks to test with: {error}")


@pytest.fixture(scope="module")
def results(all_areas) -> list[Result]:
    """Every answer, judged by one exploration of all apps."""
    with FixtureServer(site_pages(all_areas, "Frameworks")) as site:
        judged = judge(all_areas, explore(site.url, depth=3), site)
        assert site.mutations == 0
    print(table(judged))  # noqa: T201 - pytest shows it with the first failure
    return judged


@pytest.mark.parametrize("routing", ["history", "hash"])
@pytest.mark.parametrize("framework", [framework.name for framework in FRAMEWORKS])
def test_exploring_an_app_finds_every_answer(results, framework, routing):
    area = f"{framework}-{routing}"
    gaps = GAPS.get(area, {})
    missing = {
        str(result.expect): result.instead for result in results if result.expect.area == area and not result.seen
    }
    assert {key: instead for key, instead in missing.items() if key not in gaps} == {}
    assert set(gaps) <= set(missing), "found meanwhile: take it out of the gaps"
