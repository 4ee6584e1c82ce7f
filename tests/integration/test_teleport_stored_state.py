"""A teleport arrives on a site that stores the state of its widgets and restores it on load."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

LIST = """<!doctype html><title>Letters</title><h1>Letters</h1>
<button id="toggle">Toggle path</button><p id="path">You are in: <a href="/">Letters</a></p>
<button id="more">More</button><ul id="menu" hidden><li>The menu is open</li></ul><p>Nothing to read today.</p>
<script>
  const show = () => { path.hidden = localStorage.path === "hidden"; };
  toggle.onclick = () => { localStorage.path = localStorage.path === "hidden" ? "shown" : "hidden"; show(); };
  more.onclick = () => { menu.hidden = !menu.hidden; };
  show();
</script>"""


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """The map of the site, and its states: initial, without the path, with the menu."""
    with FixtureServer({"/": LIST}) as site:
        store = Store.open(str(tmp_path_factory.mktemp("letters") / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 1})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        said = {seen.node_id: {s.text for s in seen.segments} for seen in capture.observations.values()}
        (hidden,) = [node for node, texts in said.items() if "Letters" in texts and "You are in:" not in texts]
        (opened,) = [node for node, texts in said.items() if "The menu is open" in texts]
        (plain,) = said.keys() - {hidden, opened}
        with StoreMap(store.location) as maps:
            yield capture, maps, plain, hidden, opened


def test_click_that_hid_an_element_gets_an_inherited_edge_back(letters):
    capture, _, plain, hidden, _ = letters
    (back,) = [edge for edge in capture.graph.edges if edge.source == hidden and edge.action.name == "Toggle path"]
    assert (back.target, back.inherited) == (plain, True)


def test_a_change_that_the_site_stores_is_reverted_if_reloading_does_not_help(letters):
    capture, maps, plain, hidden, opened = letters

    async def walk():
        async with shared_browser() as browser:
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            page = await context.new_page()
            first = await teleport(page, maps, capture.site, hidden)
            again = await teleport(first.page, maps, capture.site, opened)
            return first, again

    first, again = BROWSERS.run(walk())
    assert (first.outcome, again.outcome, again.node_id) == ("arrived", "arrived", opened), again
    shown = [step.seen_node_id for step in again.steps]
    assert hidden in shown  # loading the page did not help
    assert shown[-2:] == [plain, opened]
