"""Cross-origin frames of the site are observed and acted in, in guarded pages and in pages of callers."""

import asyncio
from contextlib import contextmanager

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import LOOPBACK_ONLY
from tests.sites.answers import judge, site_pages
from tests.sites.phenomena.cross_origin import FRAMED, framed
from tests.sites.server import FixtureServer
from waygraph.core.settings import EncodeSettings, ExploreSettings, Settings
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs.publishing.draft import encode_draft
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

pytestmark = pytest.mark.extended

#: One more name of this machine: another site to the browser, whose frames have a process of their own.
BROWSER = LOOPBACK_ONLY.model_copy(
    update={
        "extra_args": (
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
            "--site-per-process",
        )
    }
)


@contextmanager
def framed_site(host):
    """A running site with the area, its servers and the key of the other host."""
    with FixtureServer({}) as third, FixtureServer({}) as other, FixtureServer({}) as site:
        area = framed(site, other, third, host=host)
        site.pages.update(site_pages([area], "Framed", other))
        port = other.url.rstrip("/").rpartition(":")[2]
        yield site, other, third, area, f"{host}:{port}"


@pytest.fixture(scope="module", params=["127.0.0.1", "localhost"])
def explored(request):
    """Captures with the other host in the same renderer process (another port) and in a separate one."""
    with framed_site(request.param) as (site, other, third, area, key):
        settings = Settings(browser=BROWSER, explore=ExploreSettings(depth=2, scope_hosts=(key,)))
        blobs = MemoryBlobs()
        capture = asyncio.run(explore_site(site.url, settings=settings, blobs=blobs))
        results = judge([area], capture, site, other)
        assert site.mutations == other.mutations == third.mutations == 0
        yield site, capture, {str(result.expect): result for result in results}, blobs, settings


@pytest.mark.parametrize("expect", [str(answer) for answer in FRAMED.expected])
def test_exploring_finds_the_content_of_cross_origin_frames(explored, expect):
    result = explored[2][expect]
    assert result.seen, result.instead


def test_elements_in_cross_origin_frames_have_frame_paths_and_boxes_in_page_coordinates(explored):
    _, capture, *_ = explored
    actions = {edge.action.name: edge.action for edge in capture.graph.edges}
    outer = actions["Panel button"].frame
    assert len(outer) == 1
    assert outer[0].endswith("/iframe[1]")
    assert actions["Home in a foreign frame"].frame == (*outer, actions["Home in a foreign frame"].frame[1])
    start = next(node for node in capture.graph.nodes.values() if node.url.endswith("/framed") and node.addressable)
    boxes = {segment.text: segment.box for segment in capture.observations[start.id].segments}
    assert boxes["Panel text"].y > 1500  # below what stands above the frame
    assert boxes["Far down in the panel"].y > boxes["Panel text"].y + 1800
    texts = list(boxes)
    assert texts.index("Ask the panel") < texts.index("Panel text") < texts.index("Boxed button")


def last_texts(capture):
    """Return URL and last texts of each state by id, so that a failure says which state is missing."""
    return {
        node_id: (seen.url, [segment.text for segment in seen.segments[-3:]])
        for node_id, seen in capture.observations.items()
    }


@pytest.mark.parametrize("explored", ["localhost"], indirect=True)
def test_exploring_with_more_workers_gives_the_same_map(explored):
    site, capture, _, _, settings = explored
    again = settings.model_copy(update={"explore": settings.explore.model_copy(update={"workers": 3})})
    other = asyncio.run(explore_site(site.url, settings=again, blobs=MemoryBlobs()))
    assert last_texts(other) == last_texts(capture)
    assert {(e.source, str(e.action), e.target) for e in other.graph.edges} == {
        (e.source, str(e.action), e.target) for e in capture.graph.edges
    }


def test_teleport_acts_in_cross_origin_frames(explored, tmp_path):
    _, capture, _, blobs, settings = explored
    store = Store.open(str(tmp_path / "maps"), create=True)
    for content in blobs.values():
        store.blobs.put(content)
    store.publish(encode_draft(capture, settings, create_encoder(EncodeSettings())))
    targets = [node.id for node in capture.graph.nodes.values() if not node.addressable]
    assert len(targets) >= 10

    async def walk(source):
        ended = []
        async with launch(BROWSER) as browser:
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            for target in targets:
                page = await context.new_page()
                result = await teleport(page, source, capture.site, target, settings=BROWSER)
                ended.append((result.outcome, result.node_id == target, result.problem))
                await page.close()
        return ended

    with StoreMap(str(tmp_path / "maps")) as source:
        assert set(asyncio.run(walk(source))) == {("arrived", True, "")}
