"""State of a run: totals, exit codes and reports from the outcomes of sites, and resuming an unfinished run."""

import json
import os
import signal
from concurrent.futures import Future

import pytest

from tests import screenshot_map
from waygraph.core.errors import (
    BrowserFailure,
    BrowserMissing,
    InUse,
    RobotsForbidden,
    SiteUnreachable,
    StoreError,
    WaygraphError,
)
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.explore.records.capture import ExploreProgress
from waygraph.pipeline.jobs import run_index
from waygraph.pipeline.jobs.events import Notice, RunStarted, SiteFinished, SitePhase, SiteTurnEnded
from waygraph.pipeline.jobs.failures import FailureCounts
from waygraph.pipeline.jobs.report.outcomes import TURN_ENDED, Exploration, Publication
from waygraph.pipeline.jobs.report.report_file import MAX_SITES_IN_MEMORY, read_report, read_report_head
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.manifest import new_manifest, run_database_folder
from waygraph.pipeline.jobs.run.run_database import RunDatabase, unfinished_runs
from waygraph.pipeline.jobs.run.run_state import RunState
from waygraph.pipeline.jobs.sites.site_list import plan_sites

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


def run_state_of(store, number, events=None, **settings):
    """Return the state of a new run, or of the next invocation of an unfinished one."""
    plan = plan_sites([f"site{i}.example" for i in range(number)])
    settings = Settings(store=store.location, **settings)
    manifest = new_manifest(plan.tasks, settings, "index")
    database = RunDatabase.open(run_database_folder(settings.store), manifest, plan.tasks)
    on_event = events.append if events is not None else lambda _: None
    return RunState(database, store, budget=RunBudget(settings.jobs), on_event=on_event)


def publish(state, site):
    state.begin_exploring(site)
    state.set_exploration(site, EXPLORATION)
    state.finish(site, "published", publication=PUBLICATION)


def close(store, *errors, interrupted=False):
    """Return the report of a run in which each site fails with the given error, or is published for None."""
    state = run_state_of(store, len(errors))
    state.stopped_by = "signal" if interrupted else ""
    for site, error in zip(state.sites, errors, strict=True):
        if error is None:
            publish(state, site)
        else:
            state.finish(site, "failed", error=error)
    return state.close()


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
def test_exit_code_distinguishes_all_some_and_no_published_sites(store, errors, exit_code):
    assert close(store, *errors).exit_code == exit_code


def test_interrupted_run_exits_130_for_any_outcomes(store):
    assert close(store, None, UNREACHABLE, interrupted=True).exit_code == 130


def test_totals_count_published_sites(store):
    totals = close(store, None, UNREACHABLE, None).totals
    assert (totals.sites, totals.published, totals.failed, totals.states, totals.edges) == (3, 2, 1, 6, 10)


def test_failed_site_has_an_error_with_a_hint(store):
    error = close(store, UNREACHABLE).sites[0].error
    assert (error.type, error.message, error.hint, error.exit_code) == ("site-unreachable", "no answer", "check", 4)


def test_first_outcome_of_a_site_is_kept(store):
    state = run_state_of(store, 1)
    publish(state, state.sites[0])
    state.fail_unfinished(UNREACHABLE)
    assert state.close().sites[0].status == "published"


def test_sites_without_an_outcome_are_reported_as_interrupted(store):
    state = run_state_of(store, 2)
    publish(state, state.sites[0])
    state.stopped_by = "signal"
    assert [site.status for site in state.close().sites] == ["published", "interrupted"]


def test_fail_unfinished_fails_every_site_without_an_outcome(store):
    state = run_state_of(store, 3)
    publish(state, state.sites[1])
    state.fail_unfinished(NO_BROWSER)
    assert state.completed.is_set()
    assert [site.status for site in state.close().sites] == ["failed", "published", "failed"]


def test_events_are_emitted_in_order(store):
    events = []
    state = run_state_of(store, 1, events)
    publish(state, state.sites[0])
    assert [type(event) for event in events] == [RunStarted, SitePhase, SiteFinished]
    assert events[0].sites == ("site0.example",)


def test_report_is_written_completely_to_the_store(store, tmp_path):
    report = close(store, None, UNREACHABLE)
    written = json.loads((tmp_path / "maps" / "runs" / report.run_id / "report.json").read_text())
    assert written == report.model_dump(mode="json")
    assert written["exit_code"] == 5
    assert written["totals"]["published"] == 1
    assert written["sites"][0]["exploration"]["states"] == 3


def test_unexpected_error_leaves_its_traceback_in_the_run_folder(store, tmp_path):
    state = run_state_of(store, 1)
    error = BrowserFailure("wrapped")
    error.__cause__ = ZeroDivisionError("the reason")
    state.finish(state.sites[0], "failed", error=error)
    (written,) = (tmp_path / "maps" / "runs" / state.run_id).glob("error-*.txt")
    assert "the reason" in written.read_text()


def test_sites_left_unfinished_by_an_invocation_are_resumed_by_the_next_one(store):
    first = run_state_of(store, 4)
    publish(first, first.sites[0])
    first.finish(first.sites[1], "failed", error=UNREACHABLE)
    first.begin_exploring(first.sites[2])
    first.stopped_by = "signal"
    report = first.close()
    assert (report.exit_code, report.unfinished) == (130, 2)

    events = []
    second = run_state_of(store, 4, events)
    assert second.run_id == report.run_id
    assert [site.key for site in second.unfinished] == ["site2.example", "site3.example"]
    assert (events[0].resumed, events[0].done) == (True, {"published": 1, "failed": 1})
    publish(second, second.sites[2])
    publish(second, second.sites[3])
    last = second.close()
    assert [site.status for site in last.sites] == ["published", "failed", "published", "published"]
    assert [site.attempts for site in last.sites] == [1, 0, 1, 1]  # an attempt interrupted by the stop is not counted
    assert last.findings.retried == 0
    assert (last.unfinished, len(last.calls), last.exit_code) == (0, 2, 5)
    assert run_state_of(store, 4).run_id != report.run_id  # it is finished: the next invocation starts another run


def test_environment_failures_before_a_stop_are_retried_by_the_next_invocation(store):
    first = run_state_of(store, 3)
    publish(first, first.sites[0])
    first.finish(first.sites[1], "failed", error=StoreError("full"), is_final=False)
    first.stopped_by = "signal"
    assert first.close().unfinished == 2
    assert [site.key for site in run_state_of(store, 3).unfinished] == ["site1.example", "site2.example"]


def test_completed_invocation_ends_the_run_despite_failed_sites(store):
    """Otherwise one expired session would prevent the same command from mapping all other sites again."""
    first = run_state_of(store, 2)
    publish(first, first.sites[0])
    first.finish(first.sites[1], "failed", error=StoreError("full"), is_final=False)
    report = first.close()
    assert (report.exit_code, report.unfinished) == (5, 0)
    second = run_state_of(store, 2)
    assert second.run_id != report.run_id
    assert len(second.unfinished) == 2


def test_budget_spent_while_publishing_the_last_site_leaves_nothing_unfinished(store):
    state = run_state_of(store, 1)
    state.stopped_by = "max_total_seconds"
    publish(state, state.sites[0])
    report = state.close()
    assert (report.exit_code, report.unfinished) == (0, 0)


def test_failed_write_of_a_traceback_does_not_prevent_the_outcome_of_a_site(store, monkeypatch):
    events = []
    state = run_state_of(store, 1, events)
    error = WaygraphError("refused")
    error.__cause__ = ZeroDivisionError()

    def refuse(*_):
        raise StoreError("full")

    monkeypatch.setattr(Store, "write_run", refuse)
    state.finish(state.sites[0], "failed", error=error)
    assert state.completed.is_set()
    assert any(isinstance(event, Notice) and "full" in event.text for event in events)


def test_failed_attempts_are_restored_by_the_next_invocation(store):
    first = run_state_of(store, 1)
    first.begin_exploring(first.sites[0])
    first.sites[0].failures = FailureCounts(counted=1)
    first.record_failed_attempt(first.sites[0])
    first.close()
    assert run_state_of(store, 1).sites[0].failures.counted == 1


def test_states_of_a_retry_count_towards_the_budget_and_resumed_states_do_not(store):
    def progress(state, states):
        state.begin_exploring(state.sites[0])
        state.set_progress(state.sites[0], ExploreProgress("site0.example", 1, states, 0, 0, 0, 0, 0))

    first = run_state_of(store, 1)
    first.begin_exploring(first.sites[0])  # its explorer dies before it reports progress
    first.record_failed_attempt(first.sites[0])
    progress(first, 7)
    progress(first, 7)  # a third attempt resumes from the journal
    assert first.budget.states == 7
    first.stopped_by = "signal"
    first.close()
    second = run_state_of(store, 1)
    progress(second, 7)
    progress(second, 9)
    assert second.budget.states == 2


def test_other_settings_start_another_run(store):
    first = run_state_of(store, 2)
    publish(first, first.sites[0])
    first.close()
    assert len(run_state_of(store, 2, explore={"depth": 1}).unfinished) == 2


def test_settings_without_effect_on_maps_resume_the_same_run(store):
    first = run_state_of(store, 2)
    publish(first, first.sites[0])
    first.close()
    other = {"explore": {"workers": 9, "max_seconds": 5}, "jobs": {"sites_at_once": 3, "max_total_states": 7}}
    assert len(run_state_of(store, 2, **other).unfinished) == 1


def test_run_in_progress_is_refused(store):
    state = run_state_of(store, 2)
    with pytest.raises(InUse, match="in progress already"):
        run_state_of(store, 2)
    state.close()


def test_expired_unfinished_run_is_started_again(store):
    state = run_state_of(store, 2)
    publish(state, state.sites[0])
    run = state.close().run_id
    for file in run_database_folder(store.location).glob("*.sqlite*"):
        os.utime(file, (0, 0))
    assert run_state_of(store, 2).run_id != run


def test_expired_run_databases_are_deleted(store):
    run_state_of(store, 2).close()
    for file in run_database_folder(store.location).glob("*.sqlite*"):
        os.utime(file, (0, 0))
    other = run_state_of(store, 3)
    assert {file.name.partition(".")[0] for file in run_database_folder(store.location).iterdir()} == {
        other._database.manifest.key
    }


def test_unreadable_run_database_is_set_aside(store):
    state = run_state_of(store, 2)
    publish(state, state.sites[0])
    run = state.close().run_id
    (file,) = run_database_folder(store.location).glob("*.sqlite")
    file.write_bytes(b"nonsense" * 1000)
    assert run_state_of(store, 2).run_id != run
    assert [path.read_bytes()[:8] for path in run_database_folder(store.location).glob("*.stale")] == [b"nonsense"]


def test_a_finished_run_leaves_no_database(store):
    close(store, None, UNREACHABLE)
    assert list(run_database_folder(store.location).iterdir()) == []


def test_unfinished_runs_lists_running_and_interrupted_runs(store):
    state = run_state_of(store, 3)
    ((status, is_held),) = unfinished_runs(run_database_folder(store.location))
    assert (status.manifest.run_id, status.counts, is_held) == (state.run_id, {"left": 3}, True)
    publish(state, state.sites[0])
    state.close()
    ((status, is_held),) = unfinished_runs(run_database_folder(store.location))
    assert (status.counts, is_held) == ({"published": 1, "interrupted": 2, "left": 0}, False)


def test_site_published_just_before_a_kill_is_not_repeated(store):
    """The run database has the site as explored, the store as published."""
    first = run_state_of(store, 2)
    first.begin_exploring(first.sites[0])
    first.set_exploration(first.sites[0], EXPLORATION)
    screenshot_map.publish(store, "site0.example", screenshot_map.colours(1), run_id=first.run_id)
    first.close()
    second = run_state_of(store, 2)
    second.recover()
    assert [site.key for site in second.unfinished] == ["site1.example"]
    outcome = second.close().sites[0]
    assert (outcome.status, outcome.publication.version, outcome.exploration) == ("published", 1, EXPLORATION)
    assert outcome.attempts == 1


def test_site_published_under_the_key_of_its_redirect_target_is_not_repeated(store):
    first = run_state_of(store, 1)
    first.begin_exploring(first.sites[0])
    first.set_exploration(first.sites[0], EXPLORATION.model_copy(update={"site": "www.site0.example"}))
    screenshot_map.publish(store, "www.site0.example", screenshot_map.colours(1), run_id=first.run_id)
    first.close()
    second = run_state_of(store, 1)
    second.recover()
    outcome = second.close().sites[0]
    assert (outcome.status, outcome.site, outcome.map) == ("published", "site0.example", "www.site0.example")


OF_TURN = EXPLORATION.model_copy(update={"partial": True, "stopped_by": TURN_ENDED, "expected_gain": 4.5})


def end_turn(state, site, version=1):
    state.begin_exploring(site)
    state.set_exploration(site, OF_TURN)
    state.end_turn(site, PUBLICATION.model_copy(update={"version": version}))


def publish_turn(store, state, site, states):
    return screenshot_map.publish(
        store, site.key, screenshot_map.colours(states), run_id=state.run_id, stopped_by=TURN_ENDED
    )


def test_a_site_whose_turn_ended_is_published_at_the_end_and_continued_by_the_next_invocation(store):
    events = []
    first = run_state_of(store, 2, events)
    for site in first.sites:
        end_turn(first, site)
    assert not first.completed.is_set()
    end_turn(first, first.sites[0], version=2)
    first.stopped_by = "max_total_states"
    for site in first.sites:
        first.finish(site, "interrupted")
    report = first.close()
    assert (report.exit_code, report.unfinished, report.totals.published) == (11, 2, 2)
    assert [site.publication.version for site in report.sites] == [2, 1]
    assert [(site.exploration.seconds, site.publication.encoded) for site in report.sites] == [(2.0, 6), (1.0, 3)]
    kinds = [type(event) for event in events]
    assert (kinds.count(SiteTurnEnded), kinds.count(SiteFinished)) == (3, 2)

    second = run_state_of(store, 2)
    second.recover()
    assert [site.turns.expected_gain for site in second.unfinished] == [4.5, 4.5]
    publish(second, second.sites[0])
    second.stopped_by = "signal"
    report = second.close()
    assert [(site.status, site.exploration.partial) for site in report.sites] == [
        ("published", False),
        ("published", True),
    ]
    assert report.sites[0].exploration.seconds == 3.0
    assert (report.unfinished, report.findings.retried) == (1, 0)


@pytest.mark.parametrize("recorded", ["nothing", "exploration", "turn"])
def test_a_turn_published_just_before_a_kill_is_not_taken_for_a_whole_map(store, recorded):
    first = run_state_of(store, 2)
    site = first.sites[0]
    first.begin_exploring(site)
    if recorded != "nothing":
        first.set_exploration(site, OF_TURN)
    version = publish_turn(store, first, site, 3)
    if recorded == "turn":
        first.end_turn(site, PUBLICATION.model_copy(update={"version": version}))
    first._database.close(finished=False)
    second = run_state_of(store, 2)
    second.recover()
    assert [site.key for site in second.unfinished] == ["site0.example", "site1.example"]
    second.stopped_by = "signal"
    outcome = second.close().sites[0]
    assert (outcome.status, outcome.publication.version, outcome.attempts) == ("published", version, 1)


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_site_that_was_killed_in_a_later_turn_is_finished_only_if_its_map_is_whole(store, is_whole):
    first = run_state_of(store, 2)
    site = first.sites[0]
    first.begin_exploring(site)
    first.set_exploration(site, OF_TURN)
    first.end_turn(site, PUBLICATION.model_copy(update={"version": publish_turn(store, first, site, 3)}))
    first.begin_exploring(site)
    if is_whole:
        screenshot_map.publish(store, site.key, screenshot_map.colours(5), run_id=first.run_id)
    first._database.close(finished=False)
    second = run_state_of(store, 2)
    second.recover()
    assert (site.key in {each.key for each in second.unfinished}) == (not is_whole)
    second.stopped_by = "signal"
    report = second.close()
    outcome = report.sites[0]
    assert (outcome.status, outcome.publication.version) == ("published", 2 if is_whole else 1)
    assert outcome.publication.encoded == 3  # what its first turn encoded
    assert (outcome.attempts, report.unfinished) == (1, 1 if is_whole else 2)


def test_a_site_that_fails_after_a_turn_has_failed_and_keeps_what_its_turns_brought(store):
    state = run_state_of(store, 2)
    end_turn(state, state.sites[0])
    state.begin_exploring(state.sites[0])
    state.finish(state.sites[0], "failed", error=UNREACHABLE)
    state.stopped_by = "signal"
    outcome = state.close().sites[0]
    assert (outcome.status, outcome.publication.version, outcome.error.type) == ("failed", 1, "site-unreachable")
    assert [site.key for site in run_state_of(store, 2).unfinished] == ["site1.example"]


@pytest.mark.parametrize("sites", [3, MAX_SITES_IN_MEMORY + 2])
def test_the_sites_of_a_report_are_the_same_in_memory_and_in_its_file(store, sites):
    state = run_state_of(store, sites)
    for site in state.sites[1:]:
        publish(state, site)
    report = state.close()
    read = read_report(store, report.run_id)
    assert isinstance(report.sites, tuple) == (sites == 3)
    assert len(report.sites) == sites
    assert [site.site for site in read.sites] == [site.site for site in report.sites]
    assert report.sites[-1] == read.sites[-1]
    assert [site.status for site in report.sites[:2]] == ["interrupted", "published"]
    assert read.model_dump(mode="json") == report.model_dump(mode="json")
    assert read_report_head(store, report.run_id).totals == report.totals
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


def test_outcomes_that_could_not_be_written_to_the_run_database_are_in_the_report(store, monkeypatch):
    state = run_state_of(store, 2)
    full = Future()
    full.set_exception(StoreError("full"))
    monkeypatch.setattr(state._database, "finish", lambda *_, **__: full)
    publish(state, state.sites[0])
    report = state.close()
    assert [site.status for site in report.sites] == ["published", "interrupted"]
    assert report.unfinished == 2


def test_run_interrupted_before_its_start_has_a_report_and_can_be_resumed(store):
    def interrupt(event):
        if isinstance(event, RunStarted):
            os.kill(os.getpid(), signal.SIGTERM)

    settings = Settings(store=store.location)
    reports = [run_index(["http://a.example/"], settings=settings, on_event=interrupt) for _ in range(2)]
    assert [(report.exit_code, report.stopped_by, report.unfinished) for report in reports] == [(130, "signal", 1)] * 2
    assert reports[0].run_id == reports[1].run_id
    assert b'"stopped_by":"signal","unfinished":1,' in store.read_run(reports[0].run_id, "report.html")


def test_a_warning_about_the_session_of_a_site_is_told_once(store):
    events = []
    state = run_state_of(store, 1, events)
    progress = ExploreProgress("site0.example", 1, 1, 0, 0, 0, 0, 0, warnings=("not signed in",))
    for _ in range(3):
        state.set_progress(state.sites[0], progress)
    assert [event for event in events if isinstance(event, Notice)] == [Notice("not signed in", state.sites[0].key)]
