"""What do the outcomes of sites make of a run?"""

import json

import pytest

from index.store import Store
from pipeline.jobs.account import Account
from pipeline.jobs.events import RunStarted, SiteFinished, SitePhase
from pipeline.jobs.report import Exploration, Publication
from pipeline.jobs.sites import plan_sites
from waygraph.errors import BrowserFailure, BrowserMissing, RobotsForbidden, SiteUnreachable

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


def account_of(store, number, events=None):
    plan = plan_sites([f"site{i}.example" for i in range(number)])
    return Account(plan, store, "maps", events.append if events is not None else lambda _: None)


def publish(account, site):
    account.begin(site)
    site.exploration = EXPLORATION
    account.finish(site, "published", publication=PUBLICATION)


def close(store, *errors, interrupted=False):
    """The report of a run in which each site fails with the given error, or is published for None."""
    account = account_of(store, len(errors))
    account.interrupted = interrupted
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
    account.interrupted = True
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
