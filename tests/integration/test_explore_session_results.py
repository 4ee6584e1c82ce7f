"""What a URL shows depends on what earlier pages left in the browser: results belong to the session they came from."""

import asyncio
import json
from contextlib import ExitStack
from functools import cache

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from tests.sites.session_results import SITES
from waygraph.core.settings import Settings
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport


def settings(workers):
    return Settings(browser=LOOPBACK_ONLY, explore={"depth": 6, "workers": workers, "sitemap": "off"})


def names_of(capture):
    """Names of the states: their headings."""
    return {
        node_id: "+".join(segment.text for segment in seen.segments if segment.role == "heading")
        for node_id, seen in capture.observations.items()
    }


def edges_of(capture):
    """Edges between states of other names."""
    names = names_of(capture)
    return {
        (names[edge.source], edge.action.name, names[edge.target])
        for edge in capture.graph.edges
        if edge.source != edge.target and not edge.openers
    }


def export(capture):
    return json.dumps(to_json(capture.site, 1, capture.graph, leads=capture.leads), sort_keys=True)


async def walk_to_all(site, maps, capture):
    """Walk to every state from the start page by clicks, each in a fresh browser context. Return what went wrong."""
    async with shared_browser() as browser:

        async def walk(node_id, name):
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            page = await context.new_page()
            await page.goto(site.url)
            result = await teleport(page, maps, capture.site, node_id, allow_goto=False)
            shown = "+".join(await context.pages[-1].locator("h1, h2").all_inner_texts())  # a tab may be open
            is_direct = result.arrived and all(step.agrees for step in result.steps)
            await context.close()
            return None if is_direct and shown == name else (name, result.outcome, shown)

        walks = await asyncio.gather(*(walk(node_id, name) for node_id, name in names_of(capture).items()))
    return [each for each in walks if each is not None]


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """Return a site, which is served on, its store and its capture; each is explored once."""
    with ExitStack() as servers:

        @cache
        def once(name):
            site = servers.enter_context(FixtureServer(SITES[name]()[0]))
            store = Store.open(str(tmp_path_factory.mktemp("sessions") / "maps"), create=True)
            return site, store, explore_with(settings(2), site.url, blobs=store.blobs)

        yield once


@pytest.mark.parametrize("name", SITES)
def test_a_link_leads_where_it_leads_in_the_session_of_its_page(name, explored):
    site, store, capture = explored(name)
    assert edges_of(capture) == SITES[name]()[1]
    assert len(set(names_of(capture).values())) == len(names_of(capture))  # no page has a copy
    store.publish(draft_from_capture(capture, settings(2)))
    with StoreMap(store.location) as maps:
        assert BROWSERS.run(walk_to_all(site, maps, capture)) == []


@pytest.mark.extended
@pytest.mark.parametrize("name", ["languages", "views"])
def test_one_worker_that_is_stopped_and_resumed_finds_the_same(name, tmp_path, explored):
    site, _, whole = explored(name)
    blobs, journal = MemoryBlobs(), tmp_path / "journal.sqlite"
    for items in (2, 4, None):
        stop, left = asyncio.Event(), iter(range(items or 1_000))

        def on_progress(_, stop=stop, left=left):
            if next(left, None) is None:
                stop.set()

        last = explore_with(settings(1), site.url, blobs=blobs, journal=journal, stop=stop, on_progress=on_progress)
        assert last.report.partial is (items is not None)
    assert export(last) == export(whole)


def test_cookies_that_decide_nothing_cost_a_few_loads_whatever_the_number_of_pages(explored):
    few = explored("marks")[2].report.counters
    with FixtureServer(SITES["marks"](12)[0]) as site:
        many = explore_with(settings(2), site.url, blobs=MemoryBlobs()).report.counters
    assert few["session/trials"] == many["session/trials"] <= 3
    assert few["load/other_session"] == many["load/other_session"] <= 6
