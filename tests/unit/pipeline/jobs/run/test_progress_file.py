"""The progress of a run in the store, as it is written and as the service reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from waygraph.core.errors import SiteUnreachable
from waygraph.core.run_progress import PROGRESS_NAME, STALE_SECONDS, ActiveSite, RunProgress
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.explore.records.capture import ExploreProgress
from waygraph.pipeline.jobs.events import SitePhase
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.manifest import new_manifest, run_database_folder
from waygraph.pipeline.jobs.run.progress_file import ProgressFile
from waygraph.pipeline.jobs.run.run_database import RunDatabase
from waygraph.pipeline.jobs.run.run_state import RunState
from waygraph.pipeline.jobs.sites.site_list import plan_sites
from waygraph.serve.query.maps import Maps
from waygraph.serve.views.progress import RunsInProgress

ACTIVE = ActiveSite(site="a.example", phase="exploring", since="2026-11-22T06:23:21+00:00", attempt=1, states=4)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "maps"), create=True)


def run_of(store: Store, *hosts: str) -> RunState:
    settings = Settings(store=store.location)
    plan = plan_sites(hosts)
    manifest = new_manifest(plan.tasks, settings, "index")
    database = RunDatabase.open(run_database_folder(settings.store), manifest, plan.tasks)
    return RunState(database, store, budget=RunBudget(settings.jobs), on_event=lambda _: None)


def written(store: Store, run_id: str) -> RunProgress:
    return RunProgress.model_validate_json(store.read_run(run_id, PROGRESS_NAME))


def test_progress_follows_the_sites_of_a_run(store: Store) -> None:
    run = run_of(store, "a.example", "b.example")
    first, second = run.sites
    with ProgressFile(run) as file:
        run.begin_exploring(first)
        run.begin_exploring(second)
        run.set_progress(first, ExploreProgress(first.key, 1, 7, 12, 9, 3, 1, 2))
        run.emit(SitePhase(first.key, "encoding", first.attempts))
        run.finish(second, "failed", error=SiteUnreachable("no answer"))
        now = file.progress()
        (active,) = now.active
        assert (active.site, active.phase, active.attempt) == ("a.example", "encoding", 1)
        assert (active.states, active.edges, active.pending, active.failed) == (7, 12, 3, 2)
        assert (now.sites, now.done, now.ended) == (2, {"failed": 1}, False)
        run.record_failed_attempt(first)
        assert file.progress().active == []
        run.begin_exploring(first)
        assert file.progress().active[0].attempt == 2
        assert file.progress().active[0].states == 0
    assert written(store, run.run_id).ended
    run.close()


def test_a_file_is_written_as_soon_as_the_run_begins_and_after_it_ended(store: Store) -> None:
    run = run_of(store, "a.example")
    with ProgressFile(run):
        pass
    assert written(store, run.run_id).ended
    run.close()


def put(
    store: Store, run_id: str, *, age: float = 0, ended: bool = False, active: tuple[ActiveSite, ...] = (ACTIVE,)
) -> None:
    updated = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    progress = RunProgress(
        run_id=run_id, work="index", updated=updated, ended=ended, sites=9, done={"failed": 2}, active=list(active)
    )
    store.write_run(run_id, PROGRESS_NAME, progress.model_dump_json().encode())


def test_the_service_lists_runs_that_are_going_on_and_no_others(store: Store) -> None:
    put(store, "20261122-000001-000001")
    put(store, "20261122-000002-000002", ended=True)
    put(store, "20261122-000003-000003", age=STALE_SECONDS + 30)
    put(store, "20261122-000004-000004")
    store.write_run("20261122-000005-000005", PROGRESS_NAME, b"{}")
    store.write_run("20261122-000006-000006", "report.json", b"{}")
    store.write_run("journals", PROGRESS_NAME, b"{}")
    with Maps(Settings(store=store.location)) as maps:
        maps.open()
        found = RunsInProgress(maps).progress()
    assert [run.run_id for run in found] == ["20261122-000004-000004", "20261122-000001-000001"]
    assert found[0].active == [ACTIVE]


def test_a_run_that_is_resumed_is_listed_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waygraph.serve.views.progress.CACHED_SECONDS", 0.0)
    monkeypatch.setattr("waygraph.serve.views.progress.IDLE_SECONDS", 0.0)
    with Maps(Settings(store=store.location)) as maps:
        maps.open()
        runs = RunsInProgress(maps)
        put(store, "20261122-000001-000001", ended=True)
        assert runs.progress() == []
        put(store, "20261122-000001-000001")
        assert [run.run_id for run in runs.progress()] == ["20261122-000001-000001"]


def test_a_caller_sees_the_progress_of_its_own_sites_only(store: Store) -> None:
    put(store, "20261122-000001-000001", active=(ACTIVE, ACTIVE.model_copy(update={"site": "b.example"})))
    put(store, "20261122-000002-000002")
    with Maps(Settings(store=store.location)) as maps:
        maps.open()
        (found,) = RunsInProgress(maps).progress({"b.example"})
    assert ([each.site for each in found.active], found.sites, found.done) == (["b.example"], 1, {})


def test_without_a_store_there_are_no_runs(tmp_path: Path) -> None:
    with Maps(Settings(store=str(tmp_path / "nothing"))) as maps:
        maps.open()
        assert RunsInProgress(maps).progress() == []
