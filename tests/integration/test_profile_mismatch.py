"""Teleports and locating in browsers whose window size, login or language differs from the capture profile."""

import json

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.profiles import MEMBER, club, rail
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.graph import HIDDEN_ROLE
from waygraph.index.store import Store
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

pytestmark = pytest.mark.extended

COOKIE = {"name": MEMBER[0], "value": MEMBER[1], "domain": "127.0.0.1", "path": "/"}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


class Mapped:
    """A site while it runs, its map, and which state a person would give which name."""

    def __init__(self, site, profiled, folder, *, member):
        explore = {"depth": 3, "workers": 2, "robots": False}
        if member:
            cookies = [COOKIE | {"expires": -1, "httpOnly": False, "secure": False, "sameSite": "Lax"}]
            explore["storage_state"] = folder / "state.json"
            explore["storage_state"].write_text(json.dumps({"cookies": cookies, "origins": []}))
        settings = Settings(browser=LOOPBACK_ONLY, explore=explore)
        store = Store.open(str(folder / "maps"), create=True)
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        self.key = capture.site
        self.maps = StoreMap(store.location)
        self._profiled = profiled
        said = {
            o.node_id: " | ".join(s.text for s in o.segments if s.role != HIDDEN_ROLE)
            for o in capture.observations.values()
        }
        named = {profiled.seen(self._path(node.url), said[node.id]): node.id for node in capture.graph.nodes.values()}
        self.ids = {name: node_id for name, node_id in named.items() if name}

    @staticmethod
    def _path(url):
        return "/" + url.split("/", 3)[3]

    def walk(self, *names, member=False, allow_goto=True, **profile):
        """Teleport to each state in one browser of a profile: outcomes, and what a person would say that it shows."""
        return {name: end[:2] for name, end in self._walk(names, member, allow_goto, profile).items()}

    def locate(self, *names, member=False, **profile):
        """The same, then locate the page: by which rule, and as which state."""
        named = {node_id: name for name, node_id in self.ids.items()}
        ended = self._walk(names, member, True, profile)
        return {name: (at.rule, named.get(at.node_id, "")) for name, (_, _, at) in ended.items()}

    def _walk(self, names, member, allow_goto, profile):
        async def run():
            ended = {}
            async with shared_browser() as browser:
                context = await browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **profile})
                if member:
                    await context.add_cookies([COOKIE])
                page = await context.new_page()
                for name in names:
                    result = await teleport(
                        page, self.maps, self.key, self.ids[name], allow_goto=allow_goto, report=False
                    )
                    said = await page.evaluate("document.body.innerText")
                    view = PageView(
                        page,
                        SnapshotOptions.from_settings(LOOPBACK_ONLY, Settings().explore),
                        LOOPBACK_ONLY,
                        owned=False,
                    )
                    seen = await view.observe()
                    view.detach()
                    at = self.maps.locate(self.key, seen.raw_url, list(seen.structure), features(seen))
                    ended[name] = result.outcome, self._profiled.seen(self._path(page.url), said), at
            return ended

        return BROWSERS.run(run())


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The club, mapped by somebody who is logged in."""
    profiled = club()
    with FixtureServer(profiled.pages) as site:
        mapped = Mapped(site, profiled, tmp_path_factory.mktemp("club"), member=True)
        with mapped.maps:
            yield mapped


def test_mobile_browser_reaches_pages_behind_a_collapsed_menu(members):
    names = ("knots", "account", "help join", "tides details", "home")
    ended = members.walk(*names, member=True, **PHONE)
    assert ended == {name: ("arrived_equivalent", name) for name in names}


def test_mobile_browser_is_located_by_distinctive_features_among_states_of_one_url(members):
    names = ("tides", "tides details", "help", "help join")
    located = members.locate(*names, member=True, **PHONE)
    assert located == {name: ("evidence", name) for name in names}


def test_mobile_browser_does_not_report_a_state_of_a_hidden_menu_as_reached(members):
    (outcome, seen) = members.walk("home more", member=True, **PHONE)["home more"]
    assert outcome not in {"arrived", "arrived_equivalent"}
    assert seen != "home more"


def test_larger_window_arrives_at_the_same_states(members):
    ended = members.walk("stoves details", "orders", member=True, viewport={"width": 1920, "height": 1080})
    assert ended == {name: ("arrived", name) for name in ("stoves details", "orders")}


@pytest.mark.parametrize("profile", [{}, PHONE], ids=["desktop", "telephone"])
def test_logged_out_browser_reaches_public_pages_and_never_claims_pages_behind_the_login(members, profile):
    public = ("charts", "help")
    ended = members.walk(*public, "news", "report", "account", **profile)
    assert {name: ended[name] for name in public} == {name: ("arrived_equivalent", name) for name in public}
    assert {ended[name][0] for name in ("news", "report", "account")} <= {"failed", "arrived_elsewhere"}


def test_translated_page_is_recognised_by_its_structure_unless_other_pages_share_it(tmp_path):
    profiled = rail()
    with FixtureServer(profiled.pages) as site:
        mapped = Mapped(site, profiled, tmp_path, member=False)
        with mapped.maps:
            ended = mapped.walk("basel", "stations", "tickets", "offers", locale="de-DE")
    assert ended["offers"][0] in {"failed", "arrived_elsewhere"}
    assert {name: ended[name] for name in ("basel", "stations", "tickets")} == {
        name: ("arrived", name) for name in ("basel", "stations", "tickets")
    }
