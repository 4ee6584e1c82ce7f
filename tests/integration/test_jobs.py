"""Many sites at once on one CPU: real actors, encoder and store; exploring follows links.

Most tests run on processes of this command, and what actors are responsible for on a real Ray as well.

Tests with a browser are in tests/e2e; here sites kill their process, hang or answer wrongly without one.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import ray
from prometheus_client.parser import text_string_to_metric_families

from tests.actors import ON_BOTH
from tests.sites.server import FixtureServer, Page
from waygraph.core.errors import InvalidInput, StoreError
from waygraph.core.settings import EncodeSettings, JobSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.store import Store
from waygraph.pipeline.jobs import failures, run_index
from waygraph.pipeline.jobs.events import Notice, SiteFinished, SitePhase, SiteProgress
from waygraph.pipeline.jobs.run.manifest import run_database_folder
from waygraph.pipeline.jobs.run.run_database import unfinished_runs
from waygraph.pipeline.jobs.work_files import journal_path

#: Much longer than Ray takes to hand metrics on; nothing waits for it to pass.
METRICS_PATIENCE_S = 60
EXPLORE = "tests.integration.link_explorer:explore_links"

SHOP = {
    "/": '<title>Shop</title><h1>Welcome</h1><a href="/chairs">Chairs</a><a href="/help">Help</a>'
    '<a href="http://elsewhere.example/">Elsewhere</a>',
    "/chairs": '<title>Chairs</title><h1>Chairs and tables</h1><a href="/">Home</a><a href="/help">Help</a>',
    "/help": '<title>Help</title><h1>How to return goods</h1><a href="/">Home</a>',
}


@pytest.fixture
def settings(tmp_path, one_cpu):
    """Settings with an encoder that loads at once, for tests that do not depend on vectors."""
    return Settings(
        store=str(tmp_path / "maps"),
        encode={"encoder": "tests.patch_encoder:create"},
        jobs={"ray": one_cpu == "ray", "sites_at_once": 2, "states_per_batch": 2},
    )


@pytest.fixture
def reading(settings):
    """The same settings with the text encoder, which loads more slowly."""
    return settings.model_copy(update={"encode": EncodeSettings()})


@pytest.fixture
def serve():
    with ExitStack() as servers:
        yield lambda pages: servers.enter_context(FixtureServer(pages))


def index(urls, settings, on_event=lambda _: None):
    return run_index(urls, settings=settings, on_event=on_event, explore=EXPLORE)


@ON_BOTH
def test_each_site_has_its_own_outcome(serve, settings, one_cpu, capfd):
    """One run: two good sites, one that answers nothing, one that kills its explorer, one that does so once, a bug.

    One explorer explores two of them at once, so that a site can lose its explorer because of another site.
    """
    good, other = serve(SHOP), serve({"/": "<title>Small</title><h1>One page</h1>"})
    gone = serve({"/": Page(drop=True)})
    deadly, buggy = serve({"/": "<!-- die -->"}), serve({"/": "<!-- bug -->"})
    answers = iter(["<!-- die -->"])
    shaky = serve({"/": lambda _: next(answers, "<title>Second try</title><h1>Here</h1>")})
    flaky = serve({"/": "<!-- browser -->"})
    events = []

    report = index([s.url for s in (good, gone, deadly, shaky, buggy, flaky, other, good)], settings, events.append)

    fates = {site.start_url: site for site in report.sites}
    assert {url: site.status for url, site in fates.items()} == {
        good.url: "published",
        other.url: "published",
        shaky.url: "published",
        gone.url: "failed",
        deadly.url: "failed",
        buggy.url: "failed",
        flaky.url: "failed",
    }
    assert report.duplicates == (good.url,)
    assert report.exit_code == 5
    assert fates[gone.url].error.type == "site-unreachable"
    assert fates[gone.url].attempts == 1
    assert fates[deadly.url].error.type == "worker-lost"
    assert fates[deadly.url].attempts == 3  # the first time it may have been the other one
    assert fates[shaky.url].attempts in {2, 3}
    assert fates[flaky.url].error.type == "browser-failure"
    assert fates[flaky.url].attempts in {2, 3}
    assert "ZeroDivisionError: a bug" in fates[buggy.url].error.message

    found = fates[good.url].exploration
    assert (found.states, found.edges, found.skipped, found.failed) == (
        3,
        5,
        {"external": 1},
        {"one that did not work": 1},
    )
    assert fates[good.url].publication.encoded == 3
    store = Store.open(settings.store)
    assert store.sites() == sorted(fates[url].site for url in (good.url, other.url, shaky.url))
    version = store.read(fates[good.url].site)
    assert set(version.pages) == set(version.graph.nodes)
    assert version.manifest.report["run_id"] == report.run_id

    assert sum(isinstance(event, SiteFinished) for event in events) == 7
    assert {e.site for e in events if isinstance(e, SiteProgress)} >= {fates[good.url].site}
    assert {e.phase for e in events if isinstance(e, SitePhase)} == {"exploring", "encoding"}
    retries = sum(site.attempts - 1 for site in report.sites)
    assert sum("trying again" in e.text for e in events if isinstance(e, Notice)) == retries >= 4
    left = {path.name for path in (Path(settings.store) / "runs" / "journals").iterdir()}
    assert left == {f"{fates[s.url].site.replace(':', '_')}.sqlite" for s in (gone, deadly, buggy, flaky)}

    folder = os.path.join(settings.store, "runs", report.run_id)  # noqa: PTH118
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as written:  # noqa: PTH118, PTH123
        assert json.load(written) == report.model_dump(mode="json")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")

    if one_cpu != "ray":
        return
    # What a scraper of Ray's own metrics sees of the same run; earlier ones of this process may be in its counters.
    ends = {"published": 3, "failed": 4, "waiting": 0, "exploring": 0, "encoding": 0}
    encoded = sum(site.publication.encoded for site in report.sites if site.publication)
    wait_for_metrics(
        lambda seen: (
            min(seen["published_maps_total", ""], seen["publisher_wait_seconds_count", ""]) >= 3
            and seen["encoded_states_total", ""] >= encoded > 0
            and seen["explored_states_total", ""] >= report.totals.states
            and seen["failed_tries_total", "yes"] >= retries
            and seen["failed_tries_total", "no"] >= 4
            and {state: seen["run_sites", state] for state in ends} == ends
            and seen["encoder_room_wait_seconds_count", ""] > 0
        )
    )


def wait_for_metrics(is_there):
    """Scrape Ray as Prometheus does, until the metrics have the expected values."""
    (node,) = ray.nodes()
    url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    deadline = time.monotonic() + METRICS_PATIENCE_S
    while True:
        seen = Counter()
        for family in text_string_to_metric_families(httpx.get(url, timeout=METRICS_PATIENCE_S).text):
            for name, labels, value, *_ in family.samples:
                if name.startswith("ray_waygraph_") and "le" not in labels:
                    kind = labels.get("again") or labels.get("state") or ""
                    seen[name.removeprefix("ray_waygraph_"), kind] += value
        if is_there(seen):
            return
        assert time.monotonic() < deadline, seen
        time.sleep(0.2)  # a poll, as a scraper's


@pytest.mark.extended
def test_equal_content_in_an_equal_context_is_not_encoded_again_by_the_next_run(serve, reading):
    shop = serve(dict(SHOP))
    first, second = index([shop.url], reading), index([shop.url], reading)
    assert [r.sites[0].error for r in (first, second)] == [None, None]
    assert [r.sites[0].publication.version for r in (first, second)] == [1, 2]
    assert (first.sites[0].publication.encoded, first.sites[0].publication.reused) == (3, 0)
    assert (second.sites[0].publication.encoded, second.sites[0].publication.reused) == (0, 3)

    shop.pages["/help"] = '<title>Help</title><h1>Something else</h1><a href="/">Home</a>'
    third = index([shop.url], reading).sites[0]
    store = Store.open(reading.store)
    contexts = [store.manifest(third.site, version).encoder.context for version in (2, 3)]
    # Boilerplate is a property of the whole site: when it changed, vectors of unchanged pages are stale too.
    assert third.publication.encoded == (1 if contexts[0] == contexts[1] else 3)

    # An index knows what became of the states of all versions before it, as a refresh does.
    (removed,) = (node.id for node in store.read(third.site).graph.nodes.values() if node.url.endswith("/help"))
    shop.pages = {path: page.replace('href="/help"', "") for path, page in shop.pages.items()}
    for _ in range(2):
        index([shop.url], reading)
        assert dict(store.read(third.site).lineage) == {removed: ""}


def test_each_site_is_explored_and_recorded_with_its_own_settings(serve, settings, tmp_path):
    flat, deep = (serve({**SHOP, "/help": SHOP["/help"] + "<!-- offers return -->"}) for _ in range(2))
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"sites:\n  - host: '{site_key(flat.url)}'\n    depth: 0\n")
    changed = settings.model_copy(update={"explore": settings.explore.model_copy(update={"rules": rules})})
    report = index([flat.url, deep.url], changed)
    assert [site.exploration.states for site in report.sites] == [1, 3]
    store = Store.open(settings.store)
    depths = [store.manifest(site.site).settings["explore"]["depth"] for site in report.sites]
    assert depths == [0, settings.explore.depth]
    shallow, whole = (store.read(site.site) for site in report.sites)
    assert {lead.names for lead in shallow.leads.values()} == {("Chairs",), ("Help",)}
    assert shallow.lead_pages.keys() == shallow.leads.keys()
    assert not whole.leads
    assert [len(version.tool_pages) for version in (shallow, whole)] == [0, 1]
    assert whole.tool_pages.keys() == whole.tools.keys()
    assert [site.publication.encoded for site in report.sites] == [1, 3]


def test_run_without_explorer_starts_no_encoder(settings):
    missing = "tests.integration.link_explorer:missing"
    report = run_index(["http://a.example/"], settings=settings, on_event=lambda _: None, explore=missing)
    assert "AttributeError" in report.sites[0].error.message
    assert report.encoding.actors_started == 0


def test_missing_weights_end_the_run_for_every_site(serve, reading, tmp_path):
    shop, held = serve(SHOP), serve({"/": "<!-- hang -->"})
    missing = reading.model_copy(update={"encode": reading.encode.model_copy(update={"weights": tmp_path / "none"})})
    reports = []
    # In a thread of its own, where no signals can be caught: a run does not need the main thread.
    thread = threading.Thread(target=lambda: reports.append(index([held.url, shop.url], missing)))
    thread.start()
    thread.join()
    assert reports[0].exit_code == 6
    assert {site.error.type for site in reports[0].sites} == {"weights-missing"}


@ON_BOTH
def test_sigint_stops_the_run_and_keeps_published_sites(serve, settings):
    """The signal comes when one site is published and the other one still explored."""
    shop, held = serve(SHOP), serve({"/": "<!-- hang -->"})

    def interrupt(event):
        if isinstance(event, SiteFinished) and event.outcome.status == "published":
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    report = index([held.url, shop.url], settings, interrupt)
    assert report.interrupted
    assert report.exit_code == 130
    assert [site.status for site in report.sites] == ["interrupted", "published"]
    assert Store.open(settings.store).sites() == [report.sites[1].site]
    assert journal_path(settings.store, report.sites[0].site).exists()
    assert not journal_path(settings.store, report.sites[1].site).exists()
    assert signal.getsignal(signal.SIGINT) is before


#: A coordinator of its own, which says what it is at.
COORDINATOR = """
import sys
from waygraph.pipeline.jobs import failures, run_index
from waygraph.pipeline.jobs.events import SiteFinished, SitePhase
from waygraph.core.settings import JobSettings, Settings

def tell(event):
    if isinstance(event, SiteFinished):
        print(event.outcome.status, event.outcome.site, flush=True)
    elif isinstance(event, SitePhase):
        print(event.phase, event.site, flush=True)

settings = Settings.model_validate_json(sys.argv[1])
run_index(sys.argv[3:], settings=settings, on_event=tell, explore=sys.argv[2])
"""


@ON_BOTH
@pytest.mark.extended
def test_run_with_killed_coordinator_is_resumed_and_locked_against_other_runs(serve, settings):
    """Two sites are published, two are in work, two wait, when SIGKILL comes."""
    published, waiting = [serve(dict(SHOP)) for _ in range(2)], [serve(dict(SHOP)) for _ in range(2)]
    in_work = [serve({"/": "<title>Slow</title><!-- hang -->"}) for _ in range(2)]
    urls = [site.url for site in (*published, *in_work, *waiting)]
    keys = [site_key(url) for url in urls]
    process = subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, settings.model_dump_json(), EXPLORE, *urls],
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
    )
    try:
        expected = {f"published {key}" for key in keys[:2]} | {f"exploring {key}" for key in keys[2:4]}
        while expected:
            line = process.stdout.readline()
            assert line, "it ended before it could be killed"
            expected.discard(line.strip())
        with pytest.raises(StoreError, match="in progress already"):
            index(urls, settings)
        ((seen, is_held),) = unfinished_runs(run_database_folder(settings.store))
        assert (seen.manifest.sites, is_held) == (6, True)
    finally:
        process.kill()
        process.communicate()
    asked = [len(site.requests) for site in published]
    for site in in_work:
        site.pages["/"] = "<title>Not slow any more</title>"

    events = []
    report = index(list(reversed(urls)), settings, events.append)
    assert report.run_id == seen.manifest.run_id
    assert [site.site for site in report.sites] == keys
    assert {site.status for site in report.sites} == {"published"}
    assert [site.attempts for site in report.sites] == [1] * 6  # what was killed was no try
    assert report.findings.retried == 0
    assert [len(site.requests) for site in published] == asked
    assert [site.publication.version for site in report.sites] == [1] * 6
    assert {event.site for event in events if isinstance(event, SitePhase)} == set(keys[2:])
    assert Store.open(settings.store).sites() == sorted(keys)
    assert list(run_database_folder(settings.store).iterdir()) == []
    assert (len(report.calls), report.unfinished, report.exit_code) == (2, 0, 0)


@pytest.mark.extended
def test_budget_ends_an_invocation_and_the_next_one_resumes(serve, settings):
    sites = [serve(dict(SHOP)) for _ in range(7)]  # of three states each
    one_by_one = settings.model_copy(update={"jobs": JobSettings(ray=False, sites_at_once=1, max_total_states=4)})
    reports = [index([site.url for site in sites], one_by_one) for _ in range(2)]
    first, second = reports
    assert (first.stopped_by, first.exit_code) == ("max_total_states", 11)
    assert 1 <= first.totals.published <= 3
    assert first.unfinished == first.totals.interrupted == 7 - first.totals.published
    assert (second.run_id, second.exit_code) == (first.run_id, 11)
    assert first.totals.published < second.totals.published < 7
    last = index([site.url for site in sites], settings)  # other limits are the same run
    assert (last.run_id, last.totals.published, last.exit_code) == (first.run_id, 7, 0)
    assert len(last.calls) == 3


def test_site_that_asks_for_a_later_attempt_runs_after_the_others(serve, settings, monkeypatch):
    monkeypatch.setattr(failures, "FIRST_PAUSE_SECONDS", 0.01)
    answers = iter(["<!-- busy -->"])
    busy = serve({"/": lambda _: next(answers, "<title>Here now</title>")})
    report = index([busy.url, serve(dict(SHOP)).url], settings)
    assert [(site.status, site.attempts) for site in report.sites] == [("published", 2), ("published", 1)]


def test_malformed_urls_and_folders_that_are_no_store_are_refused_before_anything_starts(settings, tmp_path):
    with pytest.raises(InvalidInput):
        index(["ftp://a.example/"], settings)
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError):
        index(["http://a.example/"], settings)
