"""Requests that nobody asked for: the browser's and scripts' prefetches, and what pages send when they are scrolled."""

import asyncio

import pytest

from tests.browsers import LOOPBACK_ONLY
from tests.exploring import explore
from tests.sites.server import FixtureServer, Page
from tests.sites.unasked import UnaskedSite
from tests.tls import behind_tls

MODES = [
    ("guard", "press", 1),
    pytest.param("guard", "press", 4, marks=pytest.mark.extended),
    pytest.param("guard", "skip", 1, marks=pytest.mark.extended),
    pytest.param("strict", "press", 1, marks=pytest.mark.extended),
    pytest.param("observe", "skip", 1, marks=pytest.mark.extended),
]


def explore_inside_tls(site, **settings):
    async def run():
        async with behind_tls(int(site.url.split(":")[2].strip("/"))) as (port,):
            trusting = {"extra_args": (*LOOPBACK_ONLY.extra_args, "--ignore-certificate-errors")}
            url = f"https://127.0.0.1:{port}/"
            # robots.txt is read by Python, which trusts no certificate of our own making.
            return await asyncio.to_thread(explore, url, depth=2, browser=trusting, robots=False, **settings)

    return asyncio.run(run())


def assert_nothing_unasked(site, capture, *never):
    assert site.speculative == []
    paths = set(site.paths)
    assert {path for path in paths if path in {"/logout", "/rules.json"} or path.startswith(never)} == set()
    # Links lead to two of these pages.
    assert {path for path in paths if path.startswith("/unasked")} <= {"/unasked/every-link", "/unasked/on-hover"}
    assert capture.report.counters["guard/speculation"] > 0


@pytest.mark.parametrize(("guard", "hazards", "workers"), MODES)
def test_nothing_is_loaded_ahead_of_time(guard, hazards, workers):
    with UnaskedSite() as site:
        capture = explore(site.url, depth=2, guard=guard, hazards=hazards, workers=workers)
    assert_nothing_unasked(site, capture, "/private")


@pytest.mark.parametrize(("guard", "hazards", "workers"), MODES)
def test_nothing_is_loaded_ahead_of_time_inside_tls(guard, hazards, workers):
    with UnaskedSite(is_tls=True) as site:
        capture = explore_inside_tls(site, guard=guard, hazards=hazards, workers=workers)
    assert_nothing_unasked(site, capture)


def test_what_a_script_fetches_for_later_is_stopped_if_robots_txt_forbids_it_or_it_is_a_hazard():
    with UnaskedSite() as site:
        capture = explore(site.at("hover"), depth=1)
        hovered = {path for path in site.paths if path.startswith(("/private", "/logout", "/unasked", "/later"))}
    assert hovered == {"/later"}
    assert capture.report.counters["guard/forbidden"] > 0


def test_what_scrolling_makes_a_page_send_is_no_visit():
    with UnaskedSite() as site:
        capture = explore(site.url, depth=1)
        arrived = {target for method, target in site.requests if method == "POST"}
    assert arrived == {"/list"}
    assert [label.rpartition("/")[2] for label in capture.report.sent_by_visits] == ["list"]
    # That of the lazy frame, and those on sight of the end, which a page that may grow comes to twice.
    assert capture.report.counters["guard/scroll"] == 3
    assert not any(edge.is_state_changing for edge in capture.graph.edges)


def test_a_frame_that_loads_when_it_is_scrolled_to_shows_what_its_scripts_fetch():
    pages = {
        "/": "<h1>Start</h1><div style='height: 6000px'></div><iframe loading=lazy src=/late></iframe><p id=end>End</p>"
        "<script>new IntersectionObserver(() => {}).observe(document.querySelector('#end'))</script>",
        "/late": "<p>Late</p><script>fetch('/text').then(a => a.text()).then(t => document.body.append(t))</script>",
        "/text": Page("Fetched early", content_type="text/plain"),
    }
    with FixtureServer(pages) as site:
        (start,) = explore(site.url, depth=1).observations.values()
    assert {"Late", "Fetched early"} <= {segment.text for segment in start.segments}
