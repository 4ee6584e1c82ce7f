"""Lists that grow when they are scrolled: walks to rows that are not there yet, and lists without an end.

What each list shows is among the answers of `tests/sites/phenomena/growing.py`.
"""

import threading

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore, explore_with
from tests.sites.answers import judge, page, site_pages
from tests.sites.phenomena.growing import AREAS, MORE_AREAS
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import Settings
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport


def pages_of(name):
    area = next(area for area in (*AREAS, *MORE_AREAS) if area.name == f"grows-{name}")
    return {**site_pages([area], name), "/": area.pages[area.start]}


@pytest.mark.extended
def test_entries_that_scrolling_adds_in_other_ways_are_found():
    with FixtureServer({}) as site:
        site.pages.update(site_pages(MORE_AREAS, "More"))
        results = judge(MORE_AREAS, explore(site.url, depth=3), site)
    assert {str(result.expect): result.instead for result in results if not result.seen} == {}


@pytest.mark.parametrize("name", ["window", "box"])
def test_a_walk_scrolls_until_the_row_is_there(name, tmp_path):
    with FixtureServer(pages_of(name)) as site:
        store = Store.open(str(tmp_path / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"workers": 1, "depth": 1})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        start = next(iter(capture.graph.nodes))
        last = next(edge for edge in capture.graph.edges if edge.action.name == f"Entry 12 of {name}")
        assert last.action.needs_scrolling
        assert not last.inherited

        async def work():
            async with shared_browser() as browser:
                context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
                with StoreMap(store.location) as maps:
                    first = await teleport(await context.new_page(), maps, capture.site, start)
                    return await teleport(first.page, maps, capture.site, last.target, allow_goto=False)

        result = BROWSERS.run(work())
    assert result.outcome == "arrived"


def test_the_capture_of_a_page_shows_what_was_there_before_it_was_scrolled():
    script = "addEventListener('scroll', () => { said ||= say('at-' + 'the-end'); }); let said = null;"
    blobs = MemoryBlobs()
    with FixtureServer({"/": page(f"<p>A text<div style='height: 3000px'></div><script>{script}</script>")}) as site:
        explore(site.url, depth=1, blobs=blobs)
    assert any(b"A text" in content for content in blobs.values())
    assert not any(b"found: at-the-end" in content for content in blobs.values())


@pytest.mark.extended
def test_a_list_whose_answer_is_late_is_reported_and_its_rows_are_leads():
    with FixtureServer({}) as site:
        pages = pages_of("endless")
        asks = "{ waits = true; fetch('/late').then(() => { more(); waits = false; }); }"
        pages["/"] = pages["/"].replace("let n = 0;", "let n = 0, waits = false;")
        pages["/"] = pages["/"].replace("if (isAtEnd()) more();", f"if (isAtEnd() && !waits) {asks}")
        pages["/late"] = Page(
            "late", hold=threading.Event(), hold_at_most_s=3.3
        )  # longer than a long poll is waited for
        site.pages.update(pages)
        capture = explore(site.url, depth=1, workers=1)
    assert capture.report.counters["lists/cut"] == 1
    assert "Entry 5 of endless-window" in {name for lead in capture.leads.values() for name in lead.names}


def test_a_list_without_an_end_is_bounded_and_its_further_links_are_leads():
    with FixtureServer(pages_of("endless")) as site:
        one, two = (explore(site.url, depth=1, workers=workers) for workers in (1, 2))
    assert len(one.graph.nodes) == 5
    assert {name for lead in one.leads.values() for name in lead.names} == {
        f"Entry {number} of endless-window" for number in range(5, 53)
    }
    assert not any(lead.hidden for lead in one.leads.values())
    assert one.report.counters["lists/cut"] == 1
    assert to_json("site", 1, one.graph) == to_json("site", 1, two.graph)
    assert one.leads == two.leads
