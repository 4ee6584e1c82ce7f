"""JavaScript dialogs are answered as the settings say, while exploring and while teleporting."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

ASKING = """<!doctype html><title>Gate</title><h1>Gate</h1><div id=said></div>
<button onclick="if (confirm('Are you 18?')) said.innerHTML = '<h2>Come in</h2>'">Enter</button>
<button onclick="said.innerHTML = '<h3>Hello ' + prompt('Who?', 'stranger') + '</h3>'">Greet</button>
<button onclick="alert('Mind the step'); said.innerHTML = '<h4>Noted</h4>'">Warn</button>"""


@pytest.mark.parametrize(
    ("answer", "says"), [("dismiss", {"Hello null", "Noted"}), ("accept", {"Come in", "Hello stranger", "Noted"})]
)
def test_dialogs_are_answered_as_configured_while_exploring_and_teleporting(tmp_path, answer, says):
    store = Store.open(str(tmp_path / "maps"), create=True)
    settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 1, "dialogs": answer})

    async def walk(maps, capture, targets):
        async with shared_browser() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            return [(await teleport(page, maps, capture.site, target)).outcome for target in targets]

    with FixtureServer({"/": ASKING}) as site:
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        shown = {seen.node_id: {s.text for s in seen.segments} for seen in capture.observations.values()}
        with StoreMap(store.location) as maps:
            outcomes = BROWSERS.run(walk(maps, capture, shown))
    said = {text for texts in shown.values() for text in texts} & {"Come in", "Hello null", "Hello stranger", "Noted"}
    asked = {dialog for edge in capture.graph.edges for dialog in edge.dialogs}
    assert said == says
    assert asked == {"confirm: Are you 18?", "prompt: Who?", "alert: Mind the step"}
    assert outcomes == ["arrived"] * len(shown)
