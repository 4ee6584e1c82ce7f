"""A budget across sites: which site gets the next part of it, and what the next invocation does."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import LOOPBACK_ONLY
from tests.integration.test_explore_resume import PAGES
from tests.sites.server import FixtureServer
from waygraph.core.settings import EncodeSettings, JobSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs import run_index
from waygraph.pipeline.jobs.events import SiteFinished, SitePhase, SiteTurnEnded

pytestmark = pytest.mark.extended

EXPLORE = "tests.integration.turn_explorer:explore_pages"
FLAT, RICH, OTHER = "pages60-kinds3.example", "pages80-kinds70.example", "pages50-kinds4.example"
TURN = 5


@pytest.fixture
def settings(tmp_path, one_cpu):
    return Settings(store=str(tmp_path / "maps"), encode={"encoder": "tests.patch_encoder:create"}, jobs={"ray": False})


def limited(settings, **jobs):
    turns = {"ray": False, "sites_at_once": 1, "states_per_turn": TURN} | jobs
    return settings.model_copy(update={"jobs": JobSettings(**turns)})


def index(sites, settings, events=None):
    urls = [f"http://{site}/" for site in sites]
    on_event = events.append if events is not None else lambda _: None
    return run_index(urls, settings=settings, on_event=on_event, explore=EXPLORE)


def explored(events):
    return [event.site for event in events if isinstance(event, SitePhase) and event.phase == "exploring"]


def test_the_budget_goes_to_the_site_that_keeps_bringing_new_kinds(settings):
    events = []
    report = index([FLAT, RICH, OTHER], limited(settings, max_total_states=60), events)
    order = explored(events)
    assert order[:3] == [FLAT, RICH, OTHER]  # every site has a turn before any has another one
    assert len(order) > 4
    assert set(order[3:]) == {RICH}
    flat, rich, other = (site.exploration for site in report.sites)
    assert flat.states == other.states == TURN + 1  # its first progress is the start page
    assert 60 - 2 * (TURN + 1) <= rich.states < 80
    assert {site.status for site in report.sites} == {"published"}
    assert {(each.partial, each.stopped_by) for each in (flat, rich, other)} == {(True, "end_of_turn")}
    assert (report.stopped_by, report.exit_code, report.unfinished) == ("max_total_states", 11, 3)

    # Each turn published what it brought, and the report has the sums.
    ended = [event.outcome for event in events if isinstance(event, SiteTurnEnded)]
    assert Counter(outcome.site for outcome in ended) == Counter(order)
    assert [o.publication.version for o in ended if o.site == RICH] == list(range(1, len(order) - 1))
    store = Store.open(settings.store)
    for site in report.sites:
        manifest = store.manifest(site.site)
        assert (manifest.counts.states, manifest.partial) == (site.exploration.states, True)
        assert site.publication.encoded == site.publication.states == site.exploration.states
        assert site.publication.reused == 0
    assert report.totals.states == sum(site.exploration.states for site in report.sites)
    assert report.findings.promising[0].site == RICH
    assert [sum(row.states for row in each.rounds) for each in report.findings.promising] == [rich.states]
    assert sum(isinstance(event, SiteFinished) for event in events) == 3


def test_the_next_invocation_continues_the_sites_and_counts_new_states_only(settings):
    sites = [FLAT, RICH, OTHER]
    first = index(sites, limited(settings, max_total_states=40))
    events = []
    second = index(sites, limited(settings, max_total_states=20), events)
    assert explored(events)[0] == RICH  # its gain is known from the invocation before
    assert (second.run_id, second.exit_code, second.unfinished) == (first.run_id, 11, 3)
    grown = second.totals.states - first.totals.states
    assert 15 <= grown <= 30
    assert {site.site: site.status for site in second.sites} == dict.fromkeys(sites, "published")

    last = index(sites, settings)  # without limits there are no turns
    assert (last.run_id, last.exit_code, last.unfinished) == (first.run_id, 0, 0)
    assert [site.exploration.states for site in last.sites] == [60, 80, 50]
    assert [site.publication.encoded for site in last.sites] == [60, 80, 50]
    assert not any(site.exploration.partial for site in last.sites)
    assert [site.attempts for site in last.sites] == [1, 1, 1]
    assert last.findings.retried == 0
    assert not any((Path(settings.store) / "runs" / "journals").glob("*.sqlite"))


def test_turns_end_with_whole_maps_if_the_budget_suffices(settings):
    events = []
    report = index([FLAT, RICH], limited(settings, max_total_states=1_000), events)
    assert (report.exit_code, report.unfinished) == (0, 0)
    assert [(site.exploration.states, site.exploration.partial) for site in report.sites] == [(60, False), (80, False)]
    assert not any(Store.open(settings.store).manifest(site).partial for site in (FLAT, RICH))
    states = [e.outcome.exploration.states for e in events if isinstance(e, SiteTurnEnded) and e.outcome.site == RICH]
    assert all(later >= 2 * earlier for earlier, later in pairwise(states))


def test_a_turn_does_not_replace_a_larger_map_of_an_earlier_run(settings):
    whole = index([OTHER], settings)
    first = index([FLAT, OTHER], limited(settings, max_total_states=15))
    assert first.run_id != whole.run_id
    store = Store.open(settings.store)
    assert [site.status for site in first.sites] == ["published", "interrupted"]
    assert first.sites[1].exploration.states >= TURN
    assert (store.current(OTHER), store.manifest(OTHER).counts.states, store.manifest(OTHER).partial) == (1, 50, False)
    last = index([FLAT, OTHER], settings)
    assert (last.run_id, last.exit_code) == (first.run_id, 0)
    assert (last.sites[1].publication.version, last.sites[1].exploration.partial) == (2, False)
    assert store.manifest(OTHER).counts.states == 50


#: A coordinator of its own, which names the sites whose turns end.
COORDINATOR = """
import sys
from waygraph.pipeline.jobs import run_index
from waygraph.pipeline.jobs.events import SiteTurnEnded
from waygraph.core.settings import Settings

def tell(event):
    if isinstance(event, SiteTurnEnded):
        print(event.outcome.site, event.outcome.exploration.states, flush=True)

settings = Settings.model_validate_json(sys.argv[1])
run_index(sys.argv[3:], settings=settings, on_event=tell, explore=sys.argv[2])
"""


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_a_run_whose_coordinator_is_killed_after_a_turn_continues_its_sites(settings, turns):
    sites = ["pages4000-kinds3.example", "pages5000-kinds5000.example"]
    process = subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, limited(settings, max_total_states=9_000).model_dump_json(), EXPLORE]
        + [f"http://{site}/" for site in sites],
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
    )
    try:
        seen = [process.stdout.readline().split() for _ in range(turns)]
        assert all(seen), "it ended before it could be killed"
    finally:
        process.kill()
        process.communicate()
    published = {site: int(states) for site, states in seen}
    report = index(sites, limited(settings, max_total_states=30))
    assert (len(report.calls), report.exit_code, report.unfinished) == (2, 11, 2)
    assert [site.status for site in report.sites] == ["published"] * 2
    assert [site.attempts for site in report.sites] == [1, 1]  # neither a turn nor the kill was a retry
    assert report.findings.retried == 0
    store = Store.open(settings.store)
    for site in report.sites:
        assert store.manifest(site.site).counts.states == site.publication.states
        assert site.publication.states >= published.get(site.site, 0)


def export(site, graph, leads):
    return json.dumps(to_json(site, 1, graph, leads=leads), sort_keys=True)


@pytest.mark.timeout(300)
async def test_a_site_explored_in_turns_has_the_map_of_one_exploration(settings):
    real = settings.model_copy(
        update={
            "browser": LOOPBACK_ONLY,
            "encode": EncodeSettings(),
            "explore": settings.explore.model_copy(update={"depth": 2, "workers": 2, "delay_seconds": 0.0}),
        }
    )
    small = {"/": "<title>Small</title><a href=/a>A</a><a href=/b>B</a>", "/a": "<h1>A</h1>", "/b": "<h1>B</h1>"}
    with FixtureServer(PAGES) as large_site, FixtureServer(small) as small_site:
        urls = [large_site.url, small_site.url]
        whole = [await explore_site(url, settings=real, blobs=MemoryBlobs()) for url in urls]
        events = []
        report = await asyncio.to_thread(
            lambda: run_index(
                urls,
                settings=limited(real, states_per_turn=3, max_total_states=1_000),
                on_event=events.append,
            )
        )
    assert report.exit_code == 0, [site.error for site in report.sites]
    turns = [event.outcome.site for event in events if isinstance(event, SiteTurnEnded)]
    assert turns.count(site_key(urls[0])) >= 2
    store = Store.open(settings.store)
    for capture, outcome in zip(whole, report.sites, strict=True):
        version = store.read(outcome.site)
        assert export(outcome.site, version.graph, version.leads) == export(outcome.site, capture.graph, capture.leads)
        rounds = outcome.exploration.rounds
        assert sum(row.states for row in rounds) == len(capture.graph)
        assert sum(row.activations for row in rounds) == outcome.exploration.counters["explore/activations"]
