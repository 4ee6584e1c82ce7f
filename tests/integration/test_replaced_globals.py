"""Pages that replace global names and functions of prototypes are mapped and walked like others."""

import asyncio

import pytest

from tests.browsers import BROWSERS
from tests.exploring import explore
from tests.sites import replaced
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    with FixtureServer(replaced.pages()) as site:
        store = Store.open(str(tmp_path_factory.mktemp("replaced") / "maps"), create=True)
        capture = explore(site.url, blobs=store.blobs, depth=3, robots=False)
        store.publish(draft_from_capture(capture, Settings()))
        with StoreMap(store.location) as source:
            yield site, capture, source


def states_of(capture, path):
    return [node for node in capture.graph.nodes.values() if node.url.endswith(path)]


def walks(mapped, *wanted):
    """Return how teleports end, each to a state, in a page that shows another one or none; they run at once."""
    _, capture, source = mapped

    async def run(target, start):
        context = await (await BROWSERS.browser()).new_context(
            viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
        )
        try:
            page = await context.new_page()
            if start is not None:
                await page.goto(start.url)
            return await teleport(page, source, capture.site, target.id, report=False, allow_goto=start is None)
        finally:
            await context.close()

    async def all_of_them():
        async with asyncio.timeout(60):
            return await asyncio.gather(*(run(*each) for each in wanted))

    return BROWSERS.run(all_of_them())


@pytest.mark.parametrize("name", replaced.SCRIPTS)
def test_a_page_with_replaced_globals_is_mapped_and_walked(mapped, name):
    _, capture, _ = mapped
    plain, opened = sorted(states_of(capture, f"/{name}"), key=lambda node: len(node.structure))
    (following,) = states_of(capture, f"/{name}/next")
    # By its address, and from the page itself, which was there before the walk.
    results = walks(mapped, (opened, None), (opened, following), (following, plain))
    assert [result.outcome for result in results] == ["arrived"] * 3
    assert [result.problem for result in results[1:]] == ["", ""]
