"""Reports of runs: totals, progress lines, the HTML page and the list of runs."""

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests import screenshot_map
from waygraph.cli import main
from waygraph.cli.display.run_progress import PlainLines
from waygraph.cli.display.run_tally import RunTally
from waygraph.core.errors import SiteUnreachable, StoreError
from waygraph.core.evenly_spaced import evenly_spaced
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.explore.records.capture import ExploreProgress
from waygraph.pipeline.jobs.events import (
    Notice,
    RunStarted,
    SiteAttemptFailed,
    SiteFinished,
    SitePhase,
    SiteProgress,
    SiteTurnEnded,
)
from waygraph.pipeline.jobs.report.contact_sheet import MAX_PICTURES, shrink
from waygraph.pipeline.jobs.report.outcomes import (
    DepthRecord,
    EncodingReport,
    ErrorRecord,
    Exploration,
    Publication,
    RoundRecord,
    SiteOutcome,
)
from waygraph.pipeline.jobs.report.report_file import REPORT_NAME, read_report, read_report_head, write_report
from waygraph.pipeline.jobs.report.report_page import LARGEST_SITES, MAX_BARS, MAX_ROWS, report_page
from waygraph.pipeline.jobs.report.run_report import RunReport
from waygraph.pipeline.jobs.report.totals import histogram, quartiles, summarize_outcomes
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.manifest import new_manifest, run_database_folder
from waygraph.pipeline.jobs.run.run_database import RunDatabase
from waygraph.pipeline.jobs.run.run_state import RunState
from waygraph.pipeline.jobs.sites.site_list import plan_sites

HOSTILE = '<script src="http://evil.example/x.js">alert(1)</script><img src=x onerror=alert(1)>&"\''


def exploration(states=10, *, partial=False, skipped=None):
    depths = tuple(
        DepthRecord(depth=depth, states=count, activations=count, seconds=10, states_per_minute=6 * count)
        for depth, count in enumerate((1, states - 1))
    )
    return Exploration(
        states=states, edges=2 * states, inherited_edges=5, seconds=20, partial=partial,
        stopped_by="max_states" if partial else "", depths=depths, counters={}, skipped=skipped or {"external": 2},
        failed={}, failures=(),
    )  # fmt: skip


def published(number, states=10, **details):
    return SiteOutcome(
        site=f"site{number}.example",
        start_url=f"http://site{number}.example/",
        status="published",
        attempts=1,
        seconds=21.5,
        exploration=exploration(states, **details),
        publication=Publication(
            version=1, encoded=states, reused=0, encode_seconds=1, publish_seconds=1, states=states
        ),
    )


def failed(number, message="no answer"):
    return SiteOutcome(
        site=f"bad{number}.example",
        start_url=f"http://bad{number}.example/",
        status="failed",
        attempts=2,
        seconds=3,
        error=ErrorRecord.of(SiteUnreachable(message, hint="Check it.")),
    )


def report_of(*sites, **details):
    return RunReport(
        run_id="20261122-062321-0a1b2c", store="maps", started="2026-11-22T06:23:21+00:00", finished="",
        seconds=60, interrupted=False, phases={"work": 50.0}, duplicates=(), sites=sites, **details,
    )  # fmt: skip


# ---- findings -------------------------------------------------------------------------------------------------------


def test_outcomes_are_summarised_as_totals_reasons_and_quartiles():
    found = summarize_outcomes([published(1, 4), published(2, 8, partial=True), failed(1), failed(2, "HTTP 404")])
    assert found.totals.model_dump() == {
        "sites": 4, "published": 2, "unchanged": 0, "failed": 2, "interrupted": 0, "states": 12, "edges": 24
    }  # fmt: skip
    assert [(depth.depth, depth.sites, depth.states) for depth in found.depths] == [(0, 2, 2), (1, 2, 10)]
    assert (found.depths[1].velocity.least, found.depths[1].velocity.most) == (18, 42)
    assert (found.states_per_site.median, found.states_histogram) == (6, ((4, 1), (8, 1)))
    (error,) = found.errors
    assert (error.reason, error.count, error.example) == ("site-unreachable", 2, "no answer")
    assert [(reason.reason, reason.count, reason.sites) for reason in found.skipped] == [("external", 4, 2)]
    assert [(reason.reason, reason.example) for reason in found.stopped] == [("max_states", "site2.example")]
    assert (found.retried, found.error_codes) == (2, (4,))


def test_sites_at_which_a_larger_budget_would_find_most_come_first():
    def stopped(number, gain, stopped_by="max_states"):
        outcome = published(number)
        rounds = (RoundRecord(states=4, activations=20, seconds=1, gain=3.5),) * 2
        known = outcome.exploration.model_copy(
            update={"expected_gain": gain, "stopped_by": stopped_by, "rounds": rounds}
        )
        return outcome.model_copy(update={"exploration": known})

    sites = [stopped(n, float(n % 17)) for n in range(60)]
    found = summarize_outcomes([*sites, stopped(99, 50.0, stopped_by="")]).promising
    assert [each.expected_gain for each in found] == [16.0] * 3 + [15.0] * 3 + [14.0] * 3 + [13.0]
    assert found[0].site == "site16.example"


def test_number_of_reasons_in_a_report_is_bounded():
    found = summarize_outcomes(published(i, skipped={f"reason {i}": 1, "external": 1}) for i in range(200))
    assert len(found.skipped) < 50
    assert sum(reason.count for reason in found.skipped) == 400
    assert found.skipped[0].reason == "external"


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_a_histogram_counts_every_number_once(numbers):
    bins = histogram(numbers)
    assert sum(count for _, count in bins) == len(numbers)
    for least, count in bins:
        upper = 2 * least or 1
        assert count == sum(least <= number < upper for number in numbers)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_quartiles_are_in_order_and_within_the_numbers(numbers):
    found = quartiles(numbers)
    places = [found.least, found.lower, found.median, found.upper, found.most]
    assert places == sorted(places)
    assert (found.least, found.most) == (round(min(numbers), 3), round(max(numbers), 3))


# ---- the page -------------------------------------------------------------------------------------------------------


def content_of(html):
    """Return the content of a report page: what its view shows, and its images."""
    (text,) = re.findall(r'<script type="application/json" id="content">(.*?)</script>', html, re.DOTALL)
    document = json.loads(text)
    assert document["kind"] == "run"
    return document["content"], document["images"]


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "maps"), create=True)


def test_texts_of_sites_are_data_of_the_page(store):
    hostile = published(1, skipped={HOSTILE: 3}).model_copy(update={"site": HOSTILE})
    html = report_page(store, report_of(hostile, failed(1, HOSTILE), work=HOSTILE))
    assert html.count("<script") == report_page(store, report_of()).count("<script")
    content, _ = content_of(html)
    assert (content["work"], content["others"][0]["site"]) == (HOSTILE, HOSTILE)
    assert content["findings"]["skipped"][0]["reason"] == HOSTILE
    assert HOSTILE in content["failed"][0]["message"]


@pytest.mark.parametrize("number", [1, 40, 2_000])
def test_the_page_is_complete_and_bounded_for_any_number_of_sites(store, number):
    sites = [published(i, states=2 + i % 300) if i % 7 else failed(i) for i in range(number)]
    html = report_page(store, report_of(*sites))
    content, _ = content_of(html)
    mapped = content["findings"]["totals"]["published"]
    assert content["findings"]["totals"]["sites"] == number
    assert len(content["sizes"]) == (mapped if mapped <= MAX_BARS else LARGEST_SITES)
    assert content["sizes"] == sorted(content["sizes"], key=lambda row: -row[1])
    assert len(content["failed"]) + len(content["others"]) == min(number, 2 * MAX_ROWS)
    assert len(html) - len(report_page(store, report_of())) < 150_000


def test_start_pages_are_shown_as_thumbnails_and_a_missing_screenshot_is_skipped(store):
    screenshot_map.publish(store, "site1.example", screenshot_map.colours(2))
    content, images = content_of(report_page(store, report_of(published(1), published(2))))
    shown, missing = content["sheet"]
    assert images[shown["image"]].startswith("data:image/jpeg;base64,")
    assert (missing["image"], missing["problem"]) == (None, "Not found")


def test_thumbnails_are_small_for_any_screenshot():
    tall = io.BytesIO()
    Image.effect_noise((900, 9_000), 90).save(tall, "PNG")
    small = Image.open(io.BytesIO(shrink(tall.getvalue(), "x")))
    assert (small.format, small.size) == ("JPEG", (280, 175))


@given(st.integers(0, 500))
def test_thumbnails_are_distributed_over_the_list(number):
    chosen = evenly_spaced(range(number), MAX_PICTURES)
    assert len(chosen) == len(set(chosen)) == min(number, MAX_PICTURES)
    assert not number or (chosen[0], chosen[-1]) == (0, number - 1)


# ---- while it goes on -----------------------------------------------------------------------------------------------


def progress(site, states):
    return SiteProgress(site, ExploreProgress(site, 1, states, 0, 0, 0, 0, 0))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_progress_line_shows_progress_and_remaining_time():
    clock = Clock()
    tally = RunTally(clock)
    tally.add(RunStarted("r", tuple(f"site{i}.example" for i in range(1_000)), (), {"published": 400}, resumed=True))
    for number in range(100):
        clock.now += 1
        outcome = published(number) if number % 10 else failed(number)
        tally.add(SitePhase(outcome.site, "exploring", 1))
        tally.add(progress(outcome.site, 5))
        tally.add(SiteFinished(outcome))
    tally.add(SitePhase("last.example", "exploring", 1))
    line = tally.line()
    assert line.startswith("500 of 1,000 sites, 10 failed, 500 left, 1 in progress, ")
    assert tally.states_per_second == pytest.approx(9.5, rel=0.1)
    assert line.endswith("1 min 40 s so far, about 8 min 20 s to go")
    tally.add(SiteAttemptFailed("last.example"))
    assert "in progress" not in tally.line()
    tally.add(SitePhase("last.example", "exploring", 2))
    assert "1 in progress" in tally.line()


def test_many_sites_are_summarised_in_few_lines(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("waygraph.cli.display.run_progress.time.monotonic", clock)
    stream = io.StringIO()
    lines = PlainLines(stream)
    lines(RunStarted("r", tuple(f"site{i}.example" for i in range(2_000)), ()))
    for number in range(2_000):
        clock.now += 0.1
        lines(SitePhase(f"site{number}.example", "exploring", 1))
        lines(Notice("trying again", f"site{number}.example"))
        lines(SiteFinished(failed(number) if number % 2 else published(number)))
    lines(Notice("Stopping."))
    written = stream.getvalue().splitlines()
    assert written[-1] == "Stopping."
    assert len(written) < 300
    assert any(line.startswith("1,00") and "of 2,000 sites" in line for line in written)
    assert any("more such lines" in line for line in written)


def test_few_sites_are_printed_one_by_one():
    stream = io.StringIO()
    lines = PlainLines(stream)
    lines(RunStarted("r", ("a.example",), (), {}, resumed=True))
    lines(SiteFinished(failed(1)))
    assert stream.getvalue().splitlines() == [
        "run r: 1 site(s), resumed: 0 done, 1 left",
        "bad1.example: failed: no answer",
    ]


def test_a_site_that_waits_for_another_turn_is_not_in_progress():
    clock, stream = Clock(), io.StringIO()
    tally, lines = RunTally(clock), PlainLines(stream)
    for show in (tally.add, lines):
        show(RunStarted("r", ("a.example", "b.example"), ()))
        show(SitePhase("a.example", "exploring", 1))
        show(SiteTurnEnded(published(1).model_copy(update={"site": "a.example"}), None))
    assert "in progress" not in tally.line()
    assert tally.done == 0
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith("a.example: published version")
    assert last.endswith("waits for another turn")


# ---- waygraph runs --------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(store, capsys):
    """Run `waygraph runs` with arguments; return the exit code and the output."""

    def run(*words):
        code = main(["runs", "--store", store.location, *words])
        return code, capsys.readouterr().out

    return run


def account_of(store, *hosts):
    settings = Settings(store=store.location)
    plan = plan_sites(hosts)
    manifest = new_manifest(plan.tasks, settings, "index")
    store.write_run(manifest.run_id, "manifest.json", manifest.model_dump_json().encode())
    ledger = RunDatabase.open(run_database_folder(settings.store), manifest, plan.tasks)
    return RunState(ledger, store, budget=RunBudget(settings.jobs), on_event=lambda _: None)


def test_runs_are_listed_with_their_state(store, runs):
    assert "no run yet" in runs()[1]
    ended = account_of(store, "a.example")
    ended.finish(ended.sites[0], "failed", error=SiteUnreachable("no answer"))
    ended.close()
    left = account_of(store, "b.example", "c.example")
    left.finish(left.sites[0], "failed", error=SiteUnreachable("no answer"))
    left.close()
    under_way = account_of(store, "d.example")
    store.write_run("20200101-000000-000000", "error.txt", b"all that is left of a run that was killed elsewhere")
    rows = {row["run"]: row for row in json.loads(runs("--json")[1])["runs"]}
    assert [(row["state"], row["sites"], row["left"]) for row in map(rows.get, (ended.run_id, left.run_id))] == [
        ("ended, 4", 1, 0),
        ("unfinished", 2, 1),
    ]
    assert rows[under_way.run_id]["state"] == "under way"
    assert rows["20200101-000000-000000"]["state"] == "no report"
    assert "and 3 older ones" in runs("--limit", "1")[1]
    code, text = runs(under_way.run_id)
    assert (code, "is under way, and has no report yet" in text) == (0, True)
    under_way.close()


def test_a_run_is_shown_and_written_as_a_page(store, runs, tmp_path):
    account = account_of(store, "a.example")
    account.finish(account.sites[0], "failed", error=SiteUnreachable("no answer"))
    account.close()
    page, report = tmp_path / "run.html", tmp_path / "report.html"
    code, text = runs(account.run_id, "--html", str(page))
    assert (code, "a.example: failed: no answer" in text) == (0, True)
    assert main(["report", account.run_id, "--store", store.location, "-o", str(report)]) == 0
    written = content_of(store.read_run(account.run_id, "report.html").decode())
    assert written == content_of(page.read_text()) == content_of(report.read_text())
    assert runs(account.run_id)[0] == 0  # empties what was printed
    assert json.loads(runs(account.run_id, "--json")[1])["exit_code"] == 4


@pytest.mark.parametrize(("words", "code"), [(["20200101-000000-ffffff"], 3), (["--html", "x.html"], 2), (["../x"], 2)])
def test_invalid_run_arguments_have_their_exit_codes(runs, words, code):
    assert runs(*words)[0] == code


def test_report_with_encoding_statistics_round_trips(tmp_path):
    store = Store.open(str(tmp_path / "maps"), create=True)
    encoding = EncodingReport(
        encoder="text", actors_started=1, actors_lost=0, actors_at_once=1, batches=2, splits=0, states=9,
        unencodable=0, fed_seconds=4, busy_seconds=3,
    )  # fmt: skip
    report = report_of(published(1, 4), encoding=encoding)
    write_report(store, report, report.sites)
    assert read_report(store, report.run_id) == report


def test_report_with_invalid_numbers_is_reported_as_damaged(tmp_path):
    store = Store.open(str(tmp_path / "maps"), create=True)
    report = report_of(published(1, 4))
    write_report(store, report, report.sites)
    written = store.read_run(report.run_id, REPORT_NAME)
    store.write_run(report.run_id, REPORT_NAME, written.replace(b'"seconds": 60', b'"seconds": "long"', 1))
    with pytest.raises(StoreError, match="cannot be read"):
        read_report_head(store, report.run_id)
