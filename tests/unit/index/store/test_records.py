"""Records of runs and agents are deleted by their age."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.stores import SITE, age
from waygraph.cli.entry import run
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.index.store.upkeep.retention import RetentionReport, prune_records
from waygraph.pipeline.jobs.run.manifest import new_manifest, run_database_folder
from waygraph.pipeline.jobs.run.run_database import RunDatabase
from waygraph.pipeline.jobs.sites.site_list import SiteTask

OLD, YOUNG = "20260101-000000-0a1b2c", "20260102-000000-0a1b2c"


def leave_records(store: Store) -> None:
    """Write records of two runs and an agent, and an unrelated file."""
    for run_id in (OLD, YOUNG):
        store.write_run(run_id, "manifest.json", b"{}")
        store.write_run(run_id, "report.json", b"{}")
    store.feedback.add(SITE, 1, [{"ok": False}])
    store.write_run("notes", "mine.txt", b"not of a run")


def test_records_expire_by_the_age_of_their_last_addition(store: Store) -> None:
    leave_records(store)
    age(store, timedelta(days=100))
    store.write_run(YOUNG, "report.html", b"again")
    planned = prune_records(store, dry_run=True)
    assert (planned.runs, planned.feedback) == ((OLD,), 1)
    assert planned.bytes > 4
    assert prune_records(store, older_than=timedelta(days=101)).runs == ()
    assert prune_records(store, spare={OLD}, dry_run=True).runs == ()
    assert store.runs() == [OLD, YOUNG, "feedback", "notes"]
    assert prune_records(store) == planned
    assert store.runs() == [YOUNG, "feedback", "notes"]
    assert list(store.feedback.read(SITE)) == []
    assert prune_records(store) == RetentionReport()


def test_records_in_a_bucket_expire_by_the_clock_of_the_storage(bucket: Store) -> None:
    leave_records(bucket)
    bucket.feedback.add(SITE, 1, [{"ok": True}])
    assert prune_records(bucket) == RetentionReport()  # long ago by their names alone
    commit = bucket.commit
    with pytest.MonkeyPatch.context() as later:
        then = commit.now() + timedelta(days=91).total_seconds()
        later.setattr(commit, "now", lambda: then)
        done = prune_records(bucket)
    assert (done.runs, done.feedback) == ((OLD, YOUNG), 2)
    assert bucket.runs() == ["notes"]
    assert list(bucket.feedback.read(SITE)) == []


def test_gc_keeps_records_of_runs_that_can_be_resumed(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    leave_records(store)
    task = SiteTask(SITE, f"http://{SITE}/")
    manifest = new_manifest([task], Settings(store=store.location), "index").model_copy(update={"run_id": OLD})
    ledger = RunDatabase.open(run_database_folder(store.location), manifest, [task])
    ledger.write_status({}, now=True)
    ledger.close(finished=False)
    age(store, timedelta(days=100))
    assert run(["gc", "--store", store.location, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"]["runs"] == [YOUNG]
    assert run(["gc", "--store", store.location, "--keep-records", "101d"]) == 0
    assert OLD in store.runs()
    assert YOUNG in store.runs()
    assert run(["gc", "--store", store.location]) == 0
    assert "records of 1 run(s) and 1 file(s) of feedback" in capsys.readouterr().out
    assert store.runs() == [OLD, "feedback", "ledgers", "notes"]
