"""Do teleports arrive in browsers of another size, login or language, and only where a person would say so?"""

import asyncio
import json

import pytest

from index.store import Store
from pipeline.browser.features import features
from pipeline.browser.launch import launch
from pipeline.browser.snapshot import Lens
from pipeline.browser.view import PageView
from pipeline.explore import explore_site
from pipeline.jobs.publishing.draft import draft_of
from tests.conftest import LOOPBACK_ONLY
from tests.sites.profiles import MEMBER, club, rail
from tests.sites.server import FixtureServer
from waygraph.local import StoreMap
from waygraph.settings import Settings
from waygraph.teleport import teleport

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
        capture = asyncio.run(explore_site(site.url, settings=settings, blobs=store.blobs))
        store.publish(draft_of(capture, settings, pages={}))
        self.key = capture.site
        self.maps = StoreMap(store.location)
        self._profiled = profiled
        said = {o.node_id: " | ".join(s.text for s in o.segments) for o in capture.observations.values()}
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
            async with launch(LOOPBACK_ONLY) as browser:
                context = await browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **profile})
                if member:
                    await context.add_cookies([COOKIE])
                page = await context.new_page()
                for name in names:
                    result = await teleport(
                        page, self.maps, self.key, self.ids[name], allow_goto=allow_goto, report=False
                    )
                    said = await page.evaluate("document.body.innerText")
                    view = PageView(page, Lens.of(LOOPBACK_ONLY, Settings().explore), LOOPBACK_ONLY, own=False)
                    seen = await view.observe()
                    view.detach()
                    at = self.maps.locate(self.key, seen.raw_url, list(seen.structure), features(seen))
                    ended[name] = result.outcome, self._profiled.seen(self._path(page.url), said), at
            return ended

        return asyncio.run(run())


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The club, mapped by somebody who is logged in."""
    profiled = club()
    with FixtureServer(profiled.pages) as site:
        mapped = Mapped(site, profiled, tmp_path_factory.mktemp("club"), member=True)
        with mapped.maps:
            yield mapped


def test_a_telephone_reaches_pages_whose_menu_is_behind_a_button(members):
    names = ("knots", "account", "help join", "tides details", "home")
    ended = members.walk(*names, member=True, **PHONE)
    assert ended == {name: ("arrived_equivalent", name) for name in names}


def test_a_telephone_is_located_by_what_tells_states_of_one_url_apart(members):
    names = ("tides", "tides details", "help", "help join")
    located = members.locate(*names, member=True, **PHONE)
    assert located == {name: ("evidence", name) for name in names}


def test_a_telephone_does_not_claim_what_only_its_hidden_menu_opens(members):
    (outcome, seen) = members.walk("home more", member=True, **PHONE)["home more"]
    assert outcome not in {"arrived", "arrived_equivalent"}
    assert seen != "home more"


def test_a_large_window_sees_the_same_states(members):
    ended = members.walk("stoves details", "orders", member=True, viewport={"width": 1920, "height": 1080})
    assert ended == {name: ("arrived", name) for name in ("stoves details", "orders")}


@pytest.mark.parametrize("profile", [{}, PHONE], ids=["desktop", "telephone"])
def test_who_is_logged_out_reaches_public_pages_and_is_never_told_to_be_on_those_of_members(members, profile):
    public = ("charts", "help")
    ended = members.walk(*public, "news", "report", "account", **profile)
    assert {name: ended[name] for name in public} == {name: ("arrived_equivalent", name) for name in public}
    assert {ended[name][0] for name in ("news", "report", "account")} <= {"failed", "arrived_elsewhere"}


def test_a_page_in_another_language_is_known_by_its_elements_unless_other_pages_have_the_same(tmp_path):
    profiled = rail()
    with FixtureServer(profiled.pages) as site:
        mapped = Mapped(site, profiled, tmp_path, member=False)
        with mapped.maps:
            ended = mapped.walk("basel", "stations", "tickets", "offers", locale="de-DE")
    assert ended["offers"][0] in {"failed", "arrived_elsewhere"}
    assert {name: ended[name] for name in ("basel", "stations", "tickets")} == {
        name: ("arrived", name) for name in ("basel", "stations", "tickets")
    }
