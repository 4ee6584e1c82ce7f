"""What do the outcomes of sites make of a run?"""

import json
import os
import signal
from concurrent.futures import Future

import pytest

from index.store import Store
from pipeline.explore.capture import ExploreProgress
from pipeline.jobs import run_index
from pipeline.jobs.events import Notice, RunStarted, SiteFinished, SitePhase
from pipeline.jobs.report.outcomes import Exploration, Publication
from pipeline.jobs.report.report_file import IN_MEMORY, read_head, read_report
from pipeline.jobs.run.account import Account
from pipeline.jobs.run.budget import Budget
from pipeline.jobs.run.ledger import Ledger, unfinished_runs
from pipeline.jobs.run.manifest import ledgers, new_manifest
from pipeline.jobs.sites.site_list import plan_sites
from tests import picture_map
from waygraph.errors import (
    BrowserFailure,
    BrowserMissing,
    InUse,
    RobotsForbidden,
    SiteUnreachable,
    StoreError,
    WaygraphError,
)
from waygraph.settings import Settings

EXPLORATION = Exploration(
    states=3,
    edges=5,
    inherited_edges=2,
    seconds=1.0,
    partial=False,
    stopped_by="",
    depths=(),
    counters={},
    skipped={},
    failed={},
    failures=(),
)
PUBLICATION = Publication(version=1, encoded=3, reused=0, encode_seconds=0.1, publish_seconds=0.1, states=3)


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "maps"), create=True)


def account_of(store, number, events=None, **settings):
    """The account of a call of a run; of the next call, when that run was left unfinished."""
    plan = plan_sites([f"site{i}.example" for i in range(number)])
    settings = Settings(store=store.location, **settings)
    manifest = new_manifest(plan.tasks, settings, "index")
    ledger = Ledger.open(ledgers(settings.store), manifest, plan.tasks)
    on_event = events.append if events is not None else lambda _: None
    return Account(ledger, store, budget=Budget(settings.jobs), on_event=on_event)


def publish(account, site):
    account.begin(site)
    account.explored(site, EXPLORATION)
    account.finish(site, "published", publication=PUBLICATION)


def close(store, *errors, interrupted=False):
    """The report of a run in which each site fails with the given error, or is published for None."""
    account = account_of(store, len(errors))
    account.stopped_by = "signal" if interrupted else ""
    for site, error in zip(account.sites, errors, strict=True):
        if error is None:
            publish(account, site)
        else:
            account.finish(site, "failed", error=error)
    return account.close()


UNREACHABLE, FORBIDDEN, CRASH, NO_BROWSER = (
    SiteUnreachable("no answer", hint="check"),
    RobotsForbidden("no"),
    BrowserFailure("gone"),
    BrowserMissing("none"),
)


@pytest.mark.parametrize(
    ("errors", "exit_code"),
    [
        ((None,), 0),
        ((None, None), 0),
        ((UNREACHABLE,), 4),
        ((CRASH,), 1),
        ((None, UNREACHABLE), 5),
        ((None, NO_BROWSER, UNREACHABLE), 5),
        ((UNREACHABLE, FORBIDDEN), 4),
        ((NO_BROWSER, NO_BROWSER), 6),
        ((NO_BROWSER, UNREACHABLE), 4),
    ],
)
def test_the_exit_code_says_whether_all_some_or_no_sites_worked(store, errors, exit_code):
    assert close(store, *errors).exit_code == exit_code


def test_an_interrupted_run_exits_130_whatever_happened_before(store):
    assert close(store, None, UNREACHABLE, interrupted=True).exit_code == 130


def test_totals_count_what_was_published(store):
    totals = close(store, None, UNREACHABLE, None).totals
    assert (totals.sites, totals.published, totals.failed, totals.states, totals.edges) == (3, 2, 1, 6, 10)


def test_a_failed_site_says_why_and_what_to_do(store):
    error = close(store, UNREACHABLE).sites[0].error
    assert (error.type, error.message, error.hint, error.exit_code) == ("site-unreachable", "no answer", "check", 4)


def test_the_first_outcome_of_a_site_counts(store):
    account = account_of(store, 1)
    publish(account, account.sites[0])
    account.give_up(UNREACHABLE)
    assert account.close().sites[0].status == "published"


def test_sites_without_an_outcome_were_interrupted(store):
    account = account_of(store, 2)
    publish(account, account.sites[0])
    account.stopped_by = "signal"
    assert [site.status for site in account.close().sites] == ["published", "interrupted"]


def test_giving_up_fails_every_site_that_is_not_finished(store):
    account = account_of(store, 3)
    publish(account, account.sites[1])
    account.give_up(NO_BROWSER)
    assert account.completed.is_set()
    assert [site.status for site in account.close().sites] == ["failed", "published", "failed"]


def test_events_tell_the_story_in_order(store):
    events = []
    account = account_of(store, 1, events)
    publish(account, account.sites[0])
    assert [type(event) for event in events] == [RunStarted, SitePhase, SiteFinished]
    assert events[0].sites == ("site0.example",)


def test_the_report_is_in_the_store_and_names_everything(store, tmp_path):
    report = close(store, None, UNREACHABLE)
    written = json.loads((tmp_path / "maps" / "runs" / report.run_id / "report.json").read_text())
    assert written == report.model_dump(mode="json")
    assert written["exit_code"] == 5
    assert written["totals"]["published"] == 1
    assert written["sites"][0]["exploration"]["states"] == 3


def test_what_nobody_foresaw_leaves_its_traceback_in_the_run_folder(store, tmp_path):
    account = account_of(store, 1)
    error = BrowserFailure("wrapped")
    error.__cause__ = ZeroDivisionError("the reason")
    account.finish(account.sites[0], "failed", error=error)
    (written,) = (tmp_path / "maps" / "runs" / account.run_id).glob("error-*.txt")
    assert "the reason" in written.read_text()


def test_what_one_call_left_unfinished_the_next_one_goes_on_with(store):
    first = account_of(store, 4)
    publish(first, first.sites[0])
    first.finish(first.sites[1], "failed", error=UNREACHABLE)
    first.begin(first.sites[2])
    first.stopped_by = "signal"
    report = first.close()
    assert (report.exit_code, report.unfinished) == (130, 2)

    events = []
    second = account_of(store, 4, events)
    assert second.run_id == report.run_id
    assert [site.key for site in second.unfinished] == ["site2.example", "site3.example"]
    assert (events[0].resumed, events[0].done) == (True, {"published": 1, "failed": 1})
    publish(second, second.sites[2])
    publish(second, second.sites[3])
    last = second.close()
    assert [site.status for site in last.sites] == ["published", "failed", "published", "published"]
    assert [site.attempts for site in last.sites] == [1, 0, 1, 1]  # what the stop cut short was no try
    assert last.findings.retried == 0
    assert (last.unfinished, len(last.calls), last.exit_code) == (0, 2, 5)
    assert account_of(store, 4).run_id != report.run_id  # it is finished: the next one is another


def test_after_a_stop_failures_of_what_surrounds_a_site_are_tried_by_the_next_call(store):
    first = account_of(store, 3)
    publish(first, first.sites[0])
    first.finish(first.sites[1], "failed", error=StoreError("full"), settled=False)
    first.stopped_by = "signal"
    assert first.close().unfinished == 2
    assert [site.key for site in account_of(store, 3).unfinished] == ["site1.example", "site2.example"]


def test_a_call_that_came_to_its_end_is_the_end_of_the_run_whatever_failed(store):
    """Else one session that has ended would keep all other sites from ever being mapped again by the same command."""
    first = account_of(store, 2)
    publish(first, first.sites[0])
    first.finish(first.sites[1], "failed", error=StoreError("full"), settled=False)
    report = first.close()
    assert (report.exit_code, report.unfinished) == (5, 0)
    second = account_of(store, 2)
    assert second.run_id != report.run_id
    assert len(second.unfinished) == 2


def test_a_budget_that_was_spent_while_the_last_site_was_published_leaves_nothing_to_go_on_with(store):
    account = account_of(store, 1)
    account.stopped_by = "max_total_seconds"
    publish(account, account.sites[0])
    report = account.close()
    assert (report.exit_code, report.unfinished) == (0, 0)


def test_a_store_that_takes_no_traceback_does_not_keep_a_site_from_its_outcome(store, monkeypatch):
    events = []
    account = account_of(store, 1, events)
    error = WaygraphError("refused")
    error.__cause__ = ZeroDivisionError()

    def refuse(*_):
        raise StoreError("full")

    monkeypatch.setattr(Store, "write_run", refuse)
    account.finish(account.sites[0], "failed", error=error)
    assert account.completed.is_set()
    assert any(isinstance(event, Notice) and "full" in event.text for event in events)


def test_tries_that_failed_are_remembered(store):
    first = account_of(store, 1)
    first.begin(first.sites[0])
    first.sites[0].failures = 1
    first.failed(first.sites[0])
    first.close()
    assert account_of(store, 1).sites[0].failures == 1


def test_states_of_a_second_try_count_towards_the_budget_and_those_of_an_earlier_call_do_not(store):
    def progress(account, states):
        account.begin(account.sites[0])
        account.progress(account.sites[0], ExploreProgress("site0.example", 1, states, 0, 0, 0, 0, 0))

    first = account_of(store, 1)
    first.begin(first.sites[0])  # its explorer dies before it tells anything
    first.failed(first.sites[0])
    progress(first, 7)
    progress(first, 7)  # a third try goes on with what is in the journal
    assert first.budget.states == 7
    first.stopped_by = "signal"
    first.close()
    second = account_of(store, 1)
    progress(second, 7)
    progress(second, 9)
    assert second.budget.states == 2


def test_a_run_of_other_settings_is_another_run(store):
    first = account_of(store, 2)
    publish(first, first.sites[0])
    first.close()
    assert len(account_of(store, 2, explore={"depth": 1}).unfinished) == 2


def test_settings_that_shape_no_map_do_not_make_another_run(store):
    first = account_of(store, 2)
    publish(first, first.sites[0])
    first.close()
    other = {"explore": {"workers": 9, "max_seconds": 5}, "jobs": {"sites_at_once": 3, "max_total_states": 7}}
    assert len(account_of(store, 2, **other).unfinished) == 1


def test_a_run_that_somebody_is_at_is_refused(store):
    account = account_of(store, 2)
    with pytest.raises(InUse, match="under way already"):
        account_of(store, 2)
    account.close()


def test_a_run_that_nobody_went_on_with_for_long_is_begun_anew(store):
    account = account_of(store, 2)
    publish(account, account.sites[0])
    run = account.close().run_id
    for file in ledgers(store.location).glob("*.sqlite*"):
        os.utime(file, (0, 0))
    assert account_of(store, 2).run_id != run


def test_a_run_that_nobody_can_go_on_with_any_more_leaves_nothing_behind(store):
    account_of(store, 2).close()
    for file in ledgers(store.location).glob("*.sqlite*"):
        os.utime(file, (0, 0))
    other = account_of(store, 3)
    assert {file.name.partition(".")[0] for file in ledgers(store.location).iterdir()} == {other._ledger.manifest.key}


def test_a_ledger_that_cannot_be_read_is_set_aside(store):
    account = account_of(store, 2)
    publish(account, account.sites[0])
    run = account.close().run_id
    (file,) = ledgers(store.location).glob("*.sqlite")
    file.write_bytes(b"nonsense" * 1000)
    assert account_of(store, 2).run_id != run
    assert [path.read_bytes()[:8] for path in ledgers(store.location).glob("*.stale")] == [b"nonsense"]


def test_a_finished_run_leaves_no_ledger(store):
    close(store, None, UNREACHABLE)
    assert list(ledgers(store.location).iterdir()) == []


def test_a_run_is_seen_from_outside_while_it_goes_on_and_when_it_was_left(store):
    account = account_of(store, 3)
    ((status, is_held),) = unfinished_runs(ledgers(store.location))
    assert (status.manifest.run_id, status.counts, is_held) == (account.run_id, {"left": 3}, True)
    publish(account, account.sites[0])
    account.close()
    ((status, is_held),) = unfinished_runs(ledgers(store.location))
    assert (status.counts, is_held) == ({"published": 1, "interrupted": 2, "left": 0}, False)


def test_what_was_published_in_the_moment_before_a_kill_is_not_done_again(store):
    """The ledger knows that the site was begun and explored, the store that it is published."""
    first = account_of(store, 2)
    first.begin(first.sites[0])
    first.explored(first.sites[0], EXPLORATION)
    picture_map.publish(store, "site0.example", picture_map.colours(1), run_id=first.run_id)
    first.close()
    second = account_of(store, 2)
    second.recover()
    assert [site.key for site in second.unfinished] == ["site1.example"]
    outcome = second.close().sites[0]
    assert (outcome.status, outcome.publication.version, outcome.exploration) == ("published", 1, EXPLORATION)
    assert outcome.attempts == 1


def test_what_was_published_under_the_name_of_the_site_that_its_start_page_led_to_is_not_done_again(store):
    first = account_of(store, 1)
    first.begin(first.sites[0])
    first.explored(first.sites[0], EXPLORATION.model_copy(update={"site": "www.site0.example"}))
    picture_map.publish(store, "www.site0.example", picture_map.colours(1), run_id=first.run_id)
    first.close()
    second = account_of(store, 1)
    second.recover()
    outcome = second.close().sites[0]
    assert (outcome.status, outcome.site, outcome.map) == ("published", "site0.example", "www.site0.example")


@pytest.mark.parametrize("sites", [3, IN_MEMORY + 2])
def test_the_sites_of_a_report_are_the_same_in_memory_and_in_its_file(store, sites):
    account = account_of(store, sites)
    for site in account.sites[1:]:
        publish(account, site)
    report = account.close()
    read = read_report(store, report.run_id)
    assert isinstance(report.sites, tuple) == (sites == 3)
    assert len(report.sites) == sites
    assert [site.site for site in read.sites] == [site.site for site in report.sites]
    assert report.sites[-1] == read.sites[-1]
    assert [site.status for site in report.sites[:2]] == ["interrupted", "published"]
    assert read.model_dump(mode="json") == report.model_dump(mode="json")
    assert read_head(store, report.run_id).totals == report.totals
    with pytest.raises(IndexError):
        report.sites[sites]


def test_reports_of_earlier_versions_can_be_read(store):
    report = close(store, None, UNREACHABLE)
    known = report.model_dump(mode="json")
    for name in ("findings", "calls", "work", "stopped_by", "unfinished"):
        del known[name]
    store.write_run(report.run_id, "report.json", json.dumps(known, indent=2).encode())
    read = read_report(store, report.run_id)
    assert (read.totals, read.exit_code, read.sites) == (report.totals, report.exit_code, report.sites)


def test_outcomes_that_the_ledger_did_not_take_are_in_the_report_all_the_same(store, monkeypatch):
    account = account_of(store, 2)
    full = Future()
    full.set_exception(StoreError("full"))
    monkeypatch.setattr(account._ledger, "finish", lambda *_, **__: full)
    publish(account, account.sites[0])
    report = account.close()
    assert [site.status for site in report.sites] == ["published", "interrupted"]
    assert report.unfinished == 2


def test_who_interrupts_a_run_before_anything_is_started_gets_a_report_and_can_go_on(store):
    def interrupt(event):
        if isinstance(event, RunStarted):
            os.kill(os.getpid(), signal.SIGTERM)

    settings = Settings(store=store.location)
    reports = [run_index(["http://a.example/"], settings=settings, on_event=interrupt) for _ in range(2)]
    assert [(report.exit_code, report.stopped_by, report.unfinished) for report in reports] == [(130, "signal", 1)] * 2
    assert reports[0].run_id == reports[1].run_id
    assert b"left unfinished" in store.read_run(reports[0].run_id, "report.html")
