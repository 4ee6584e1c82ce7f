"""A page that a site shows at two URLs, or whose URL is written in two ways, is one state, and walks use it at both."""

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

#: Every page links to the start page by `/?id=start`, and none by the URL that the exploration begins with. A link to a
#: part of the page opens the menu. The dots have no text.
START = """<!doctype html><title>Start</title><h1>Museum</h1><p>Welcome to the museum.</p>
<a href="#menu" onclick="menu.hidden = false">Contents</a><ul id="menu" hidden><li>Rooms and floors</li></ul>
<button onclick="dots.hidden = false">Dots</button><div id="dots" hidden><i style="display:block;height:9px">
</i></div><a href="/?id=start">Home</a> <a href="/?id=help">Help</a>"""
HELP = """<!doctype html><title>Help</title><h1>Help</h1><p>How to find the museum.</p><a href="/?id=start">Home</a>
<a href="/?to=us&amp;id=write">Write</a>"""
WRITE = """<!doctype html><title>Write</title><h1>Write to us</h1><p>We answer every letter.</p>
<a href="#form" onclick="form.hidden = false">Letter</a><div id="form" hidden><p>Dear museum</p></div>"""
#: Maps write the parameters of URLs in alphabetical order, the link to this page does not.
PAGES = {"/": START, "/?id=start": START, "/?id=help": HELP, "/?to=us&id=write": WRITE, "/?id=write&to=us": WRITE}


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    with FixtureServer(PAGES) as site:
        store = Store.open(str(tmp_path_factory.mktemp("same") / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"workers": 1, "depth": 3})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        with StoreMap(store.location) as maps:
            yield capture, maps, site


def walk(mapped, begin, target):
    capture, maps, _ = mapped

    async def work():
        async with shared_browser() as browser:
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            page = await context.new_page()
            await page.goto(begin)
            return await teleport(page, maps, capture.site, target, allow_goto=False)

    return BROWSERS.run(work())


def state_behind(mapped, name):
    """Return the state that an element shows."""
    capture, _, _ = mapped
    return next(edge.target for edge in capture.graph.edges if edge.action.name == name and not edge.inherited)


def test_the_start_page_is_one_state(mapped):
    capture, _, site = mapped
    paths = {node.url.removeprefix(site.url) for node in capture.graph.nodes.values()}
    assert paths == {"", "?id=help", "?id=write&to=us"}
    assert [merge.url for merge in capture.recognition.merges.values()] == [f"{site.url}?id=start"]


def test_a_walk_without_loading_urls_reaches_the_page_that_was_loaded_first(mapped):
    capture, _, site = mapped
    (start,) = (node.id for node in capture.graph.nodes.values() if node.url == site.url and node.addressable)
    result = walk(mapped, f"{site.url}?id=help", start)
    assert (result.outcome, result.url) == ("arrived", f"{site.url}?id=start")


@pytest.mark.parametrize("name", ["Contents", "Dots"])
def test_a_walk_reaches_what_was_opened_on_it(mapped, name):
    _, _, site = mapped
    target = state_behind(mapped, name)
    result = walk(mapped, f"{site.url}?id=help", target)
    assert (result.outcome, result.problem, len(result.steps)) == ("arrived_equivalent", "", 2)
    assert result.url.startswith(f"{site.url}?id=start")


def test_a_link_to_a_part_of_the_page_is_found_whatever_the_order_of_parameters(mapped):
    _, _, site = mapped
    result = walk(mapped, f"{site.url}?id=help", state_behind(mapped, "Letter"))
    assert (result.url, result.problem, len(result.steps)) == (f"{site.url}?to=us&id=write#form", "", 2)
