"""Pages that depend on earlier visits: their states are not multiplied, and teleports arrive however they look now."""

from collections import Counter
from urllib.parse import urlsplit

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from tests.sites.visit_history import NAMES, VisitHistory
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """The running site, what was explored, and its map; the explorer leaves locks and drafts behind."""
    with FixtureServer(VisitHistory().pages) as site:
        store = Store.open(str(tmp_path_factory.mktemp("history") / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 4, "workers": 2})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        with StoreMap(store.location) as maps:
            yield site, capture, maps


def seen(capture, path):
    """Texts of the states of a path."""
    return {
        each.node_id: [segment.text for segment in each.segments]
        for each in capture.observations.values()
        if urlsplit(each.url).path == path
    }


def test_notices_of_earlier_visits_make_no_states(mapped):
    _, capture, _ = mapped
    states = Counter(urlsplit(capture.graph.nodes[node_id].url).path for node_id in capture.graph.nodes)
    assert {path: states[path] for path in ("/locked", "/autosaved")} == {"/locked": 2, "/autosaved": 2}


def test_what_a_dialog_covers_is_explored_behind_it(mapped):
    _, capture, _ = mapped
    texts = list(seen(capture, "/welcome").values())
    assert len(texts) == 3
    assert sum("Got it" in each for each in texts) == 1
    assert sum("Visibility of the welcome post" in each for each in texts) == 1
    assert {urlsplit(node.url).path for node in capture.graph.nodes.values()} >= {f"/{name}/settings" for name in NAMES}


@pytest.mark.extended
def test_one_browser_reaches_all_states_twice_by_clicks_alone(mapped):
    """In the second round dialog and hint are gone, the lock and the draft are there; the hint counts as noise."""
    site, capture, maps = mapped
    (dialog,) = [node_id for node_id, texts in seen(capture, "/welcome").items() if "Got it" in texts]

    async def run():
        async with shared_browser() as browser:
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            rounds = []
            for _ in range(2):
                rounds.append({})
                for node_id in capture.graph.nodes:
                    page = await context.new_page()
                    await page.goto(site.url)
                    result = await teleport(page, maps, capture.site, node_id, allow_goto=False)
                    rounds[-1][node_id] = result
                    await page.close()
            return rounds

    first, second = BROWSERS.run(run())
    assert {node_id: result.outcome for node_id, result in first.items() if not result.arrived} == {}
    assert {node_id: result.outcome for node_id, result in second.items() if not result.arrived} == {
        dialog: "arrived_elsewhere"
    }
    assert all(result.node_id == node_id for node_id, result in first.items())
