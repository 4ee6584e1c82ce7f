"""Exploring passes each state of the map to a callback while it runs, in a real browser."""

import asyncio

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import LOOPBACK_ONLY
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.pipeline.explore.exploration import explore_site

PAGES = {
    "/": '<title>Home</title><h1>Home</h1><a href="/a">First</a><a href="/b?token=abcdefgh">Second</a>',
    "/a": "<title>A</title><h1>First page</h1>",
    "/b": "<title>B</title><h1>Second page</h1>",
}


@pytest.fixture
def site():
    with FixtureServer(PAGES) as server:
        yield server


def test_each_state_is_passed_to_the_callback_once_as_it_will_be_published(site, tmp_path):
    told, states_then = [], []

    async def tell(observation):
        await asyncio.sleep(0.2)  # exploring waits
        told.append(observation)

    settings, journal = Settings(browser=LOOPBACK_ONLY, explore={"workers": 2}), tmp_path / "journal.sqlite"

    def explore():
        return asyncio.run(
            explore_site(
                site.url,
                settings=settings,
                blobs=MemoryBlobs(),
                on_state=tell,
                on_progress=lambda _: states_then.append(len(told)),
                journal=journal,
            )
        )

    capture = explore()
    assert {seen.node_id: seen for seen in told} == capture.observations
    assert len(told) == len(capture.graph) == 3
    assert all(seen.screenshot for seen in told)
    assert states_then[0] >= 1  # the start state, before any element was acted on

    told.clear()
    assert explore().observations == capture.observations
    assert len(told) == 3  # a run that goes on tells of what an earlier one found, too
