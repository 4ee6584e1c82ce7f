"""A refresh visits the same site with the same login as the map, or is refused."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import explore_with
from tests.sites.server import FixtureServer, Page
from waygraph.core.errors import ProvenanceMismatch, SiteMoved, SiteUnreachable
from waygraph.core.settings import RefreshSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.store import Store
from waygraph.pipeline.jobs.exploring.refresh import refresh_site
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture


class Maps:
    """A store that explorations fill; no encoder, no Ray."""

    def __init__(self, location):
        self.settings = Settings(store=str(location), browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 1})
        self.store = Store.open(self.settings.store, create=True)

    def with_explore(self, explore):
        changed = self.settings.explore.model_validate({**dict(self.settings.explore), **explore})
        return self.settings.model_copy(update={"explore": changed})

    def index(self, url, **explore):
        settings = self.with_explore(explore)
        capture = explore_with(settings, url, blobs=self.store.blobs)
        self.store.publish(draft_from_capture(capture, settings))
        return site_key(url)

    def refresh(self, url, *, full=False, journal=None, **explore):
        settings = self.with_explore(explore).model_copy(update={"refresh": RefreshSettings(full=full)})

        async def work():
            pool = await BROWSERS.pool()
            return await refresh_site(url, settings=settings, blobs=self.store.blobs, pool=pool, journal=journal)

        return BROWSERS.run(work())


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    return Maps(tmp_path_factory.mktemp("maps"))


def test_site_that_redirects_to_another_mapped_site_is_not_refreshed(maps):
    with FixtureServer({"/": "<h1>Alpha</h1>"}) as alpha, FixtureServer({"/": "<h1>Beta</h1>"}) as beta:
        # Named, since pages may not lead to loopback addresses otherwise.
        keys = [maps.index(each.url, scope_hosts=(site_key(beta.url),)) for each in (alpha, beta)]
        alpha.pages["/"] = Page(redirect=beta.url)
        with pytest.raises(SiteMoved, match=f"{keys[0]} leads to {keys[1]}"):
            maps.refresh(alpha.url)
    assert [maps.store.versions(key) for key in keys] == [[1], [1]]


def answer(request):
    """Return a page that shows more to requests with the login header."""
    return f"<h1>{'Orders' if request.headers.get('X-Account') == 'me' else 'Sign in'}</h1>"


def test_map_made_with_a_login_is_not_refreshed_without_it(maps):
    with FixtureServer({"/": answer}) as site:
        key = maps.index(site.url, headers={"X-Account": "me"})
        visits = len(site.paths)
        with pytest.raises(ProvenanceMismatch, match="header 'x-account'"):
            maps.refresh(site.url)
        assert len(site.paths) == visits  # refused before anything is asked of the site
        again = maps.refresh(site.url, headers={"X-Account": "me", "X-Other": "not the map's"})
    assert [seen.segments[0].text for seen in again.observations.values()] == ["Orders"]
    (note,) = again.refresh.notes
    assert "not used" in note
    assert "x-other" in note
    assert maps.store.manifest(key).settings["visitor"] == again.settings["visitor"]


def test_map_made_without_a_login_is_refreshed_without_it(maps):
    with FixtureServer({"/": answer}) as site:
        maps.index(site.url)
        again = maps.refresh(site.url, headers={"X-Account": "me"})
    assert [seen.segments[0].text for seen in again.observations.values()] == ["Sign in"]


def test_refresh_with_most_pages_unreachable_publishes_no_version(maps, tmp_path):
    paths = [f"/{name}" for name in ("tea", "salt", "rice", "oil")]
    pages = {"/": "".join(f"<a href={path}>To {path}</a> " for path in paths)}
    pages |= {path: f"<h1>About {path}</h1>" for path in paths}
    with FixtureServer(pages) as site:
        maps.index(site.url)
        site.pages |= dict.fromkeys(paths, Page(drop=True))
        with pytest.raises(SiteUnreachable, match="4 of 5 pages") as refused:
            maps.refresh(site.url, full=True, journal=tmp_path / "journal.sqlite")
        site.pages = pages
        again = maps.refresh(site.url, full=True, journal=tmp_path / "journal.sqlite")
    assert refused.value.retry_after_s
    assert again.refresh.loads == {"asked": 5}
