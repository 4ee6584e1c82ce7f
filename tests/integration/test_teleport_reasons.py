"""A walk that does not arrive says why, also when every step led to the recorded state."""

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

PAGE = """<!doctype html><title>Letters</title><h1>Letters</h1><p>Nothing was written yet.</p>
<button onclick="box.hidden = false">Write</button><p id="box" hidden>To whom is it?</p>"""


def test_a_state_that_the_page_leaves_by_itself_is_not_reached_for_a_reason(tmp_path):
    with FixtureServer({"/": PAGE}) as site:
        store = Store.open(str(tmp_path / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"workers": 1})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        (opened,) = (node.id for node in capture.graph.nodes.values() if not node.addressable)

        async def closed_after_each_step(step, page):
            await page.evaluate("box.hidden = true")

        async def walk(maps):
            async with shared_browser() as browser:
                context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
                page = await context.new_page()
                await page.goto(site.url)
                return await teleport(page, maps, capture.site, opened, on_step=closed_after_each_step)

        with StoreMap(store.location) as maps:
            result = BROWSERS.run(walk(maps))
    assert (result.outcome, [step.agrees for step in result.steps]) == ("arrived_elsewhere", [True] * 4)
    assert "changed" in result.problem
