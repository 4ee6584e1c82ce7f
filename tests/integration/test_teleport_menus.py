"""Teleports without loading URLs over edges that were never performed: through menus, and out of dialogs."""

from contextlib import contextmanager

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

pytestmark = pytest.mark.extended

LINKS = '<li><a href="/help">Help</a></li><li><a href="/forum">Forum</a></li><li><a href="/odd">Odd</a></li>'


def page(title, links=LINKS):
    return f"""<!doctype html><title>{title}</title>
    <nav><button onclick="menu.hidden = !menu.hidden">Menu</button><ul id="menu" hidden>{links}</ul></nav>
    <h1>{title}</h1><p>This page is about {title.lower()} and nothing else.</p>"""


#: On the page "odd", the same button opens a menu with other entries.
PAGES = {"/": page("Start"), "/help": page("Help"), "/forum": page("Forum"), "/odd": page("Odd", "<li>Nothing</li>")}


DIALOG = """<!doctype html><title>Dialog</title><h1>Letters</h1><button onclick="box.showModal()">Write</button>
<dialog id="box"><p>To whom?</p><button>Anna</button></dialog>"""


@contextmanager
def mapped_site(pages, folder, **explore):
    """Explore a site; yield the capture, the map, and the ids of its addressable states by path."""
    with FixtureServer(pages) as site:
        store = Store.open(str(folder / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"workers": 1, **explore})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        nodes = [node for node in capture.graph.nodes.values() if node.addressable]
        with StoreMap(store.location) as maps:
            yield capture, maps, {f"/{node.url.removeprefix(site.url)}": node.id for node in nodes}


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    with mapped_site(PAGES, tmp_path_factory.mktemp("menus"), depth=3) as found:
        yield found


def walk(capture, maps, begin, target):
    async def work():
        async with shared_browser() as browser:
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            first = await teleport(await context.new_page(), maps, capture.site, begin)
            return await teleport(first.page, maps, capture.site, target, allow_goto=False)

    return BROWSERS.run(work())


def test_the_menu_was_opened_on_the_start_page_only(mapped):
    capture, _, pages = mapped
    performed = {edge.source for edge in capture.graph.edges if edge.action.name == "Menu" and not edge.inherited}
    assert performed & set(pages.values()) == {pages["/"]}


def test_a_teleport_opens_the_menu_and_follows_its_link(mapped):
    capture, maps, pages = mapped
    (step,) = maps.path(capture.site, pages["/help"], pages["/forum"], allow_goto=False).steps
    assert ([opener.name for opener in step.openers], step.action.name, step.inherited) == (["Menu"], "Forum", True)
    result = walk(capture, maps, pages["/help"], pages["/forum"])
    assert (result.outcome, [each.action for each in result.steps]) == (
        "arrived",
        ['click button "Menu", click link "Forum"'],
    )


def test_a_menu_without_the_expected_link_ends_the_walk_without_success(mapped):
    capture, maps, pages = mapped
    result = walk(capture, maps, pages["/odd"], pages["/forum"])
    assert not result.arrived
    assert result.problem


def test_a_dialog_that_was_not_explored_is_closed_by_the_escape_key(tmp_path):
    with mapped_site({"/": DIALOG}, tmp_path, depth=1) as (capture, maps, pages):
        (dialog,) = capture.graph.nodes.keys() - pages.values()
        result = walk(capture, maps, dialog, pages["/"])
    assert (result.outcome, [each.action for each in result.steps]) == ("arrived", ["press Escape"])
