"""The run database: damage, races between processes, and texts that are not valid Unicode."""

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from waygraph.core.errors import SiteUnreachable
from waygraph.core.settings import Settings
from waygraph.index.graph import InteractionGraph
from waygraph.index.store import Store
from waygraph.pipeline.explore.records.capture import ExploreReport, Failure, SiteCapture
from waygraph.pipeline.jobs.exploring.exploration_statistics import exploration_statistics
from waygraph.pipeline.jobs.report.outcomes import Publication
from waygraph.pipeline.jobs.report.report_file import read_report
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.manifest import new_manifest, run_database_folder
from waygraph.pipeline.jobs.run.run_database import RunDatabase
from waygraph.pipeline.jobs.run.run_state import RunState
from waygraph.pipeline.jobs.sites.site_list import plan_sites

HALF, MARK = "\ud83d", "\N{REPLACEMENT CHARACTER}"
SITES = 12


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "maps"), create=True)


def explored(text):
    """Return the statistics of an exploration with `text` in its messages."""
    failure = Failure("a" * 32, f'click link "{text}"', f"It is covered by <b>{text}")
    report = ExploreReport("http://a.example/", 1.0, partial=False, stopped_by="", depths=(), counters={},
                           failures=(failure,), advice=(text,))  # fmt: skip
    capture = SiteCapture("a.example", report.start_url, InteractionGraph(), {}, report)
    return exploration_statistics(capture, seconds=1.0, waited_seconds=0.0)


def database_of(store, sites=SITES):
    plan = plan_sites([f"site{i}.example" for i in range(sites)])
    return RunDatabase.open(
        run_database_folder(store.location),
        new_manifest(plan.tasks, Settings(store=store.location), "index"),
        plan.tasks,
    )


def run_state_of(store, sites=SITES):
    return RunState(database_of(store, sites), store, budget=RunBudget(Settings().jobs), on_event=lambda _: None)


def finish(state, site, text="text"):
    state.begin_exploring(site)
    state.set_exploration(site, explored(text))
    made = Publication(version=1, encoded=3, reused=0, encode_seconds=0.1, publish_seconds=0.1, states=3)
    state.finish(site, "published", publication=made)


def leave_unfinished_run(store):
    """Leave a run with finished, explored and waiting sites; return its id and file."""
    state = run_state_of(store)
    for site in state.sites[:5]:
        finish(state, site)
    state.begin_exploring(state.sites[5])
    state.set_exploration(state.sites[5], explored("text"))
    state.stopped_by = "signal"
    state.close()
    (path,) = run_database_folder(store.location).glob("*.sqlite")
    return state.run_id, path


def test_page_text_with_a_lone_surrogate_is_stored_in_the_outcome(store):
    """Half of an emoji, for example, which UTF-8 cannot encode."""
    state = run_state_of(store, 2)
    finish(state, state.sites[0], HALF)
    state.finish(state.sites[1], "failed", error=SiteUnreachable(f"It says {HALF}", hint=HALF))
    state._database.flush()
    assert state._database.count_final() == 2
    report = state.close()
    first, second = read_report(store, report.run_id).sites
    assert first.exploration.failures[0].action == f'click link "{MARK}"'
    assert first.exploration.failed == {f"It is covered by <b>{MARK}": 1}
    assert first.exploration.advice == (MARK,)
    assert (second.error.message, second.error.hint) == (f"It says {MARK}", MARK)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sites SET outcome = x'00112233' WHERE position = 3",
        "UPDATE sites SET exploration = x'789c030000000001' WHERE position = 5",  # compressed: nothing at all
        "UPDATE sites SET status = 'nonsense' WHERE position = 1",
        "UPDATE calls SET seconds = 'nonsense'",
        "DELETE FROM calls",
        "DELETE FROM sites WHERE position = 2",
    ],
)
def test_run_database_with_an_unreadable_row_is_set_aside_on_opening(store, damage, caplog):
    """Otherwise the report at the end of every invocation would fail."""
    run, path = leave_unfinished_run(store)
    with closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        db.commit()
    state = run_state_of(store)
    assert state.run_id != run
    assert len(state.unfinished) == SITES
    assert "run_database/set_aside" in caplog.text
    assert path.with_name(f"{path.name}.stale").exists()


def test_any_damage_gives_a_resumed_or_a_new_run(store):
    run, path = leave_unfinished_run(store)
    sound, chance, new_runs = path.read_bytes(), random.Random(11), 0
    for _ in range(25):
        damaged = bytearray(sound)
        for _ in range(chance.choice([0, 1, 40])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])
        state = run_state_of(store)
        new_runs += state.run_id != run
        report = state.close()
        assert (len(report.sites), report.unfinished) == (SITES, SITES if state.run_id != run else SITES - 5)
    assert 0 < new_runs < 25


def test_intact_run_database_passes_its_check(store):
    run, path = leave_unfinished_run(store)
    assert run_state_of(store).run_id == run
    assert not path.with_name(f"{path.name}.stale").exists()


def test_old_run_database_deleted_concurrently_is_ignored(store, monkeypatch):
    run_state_of(store, 2).close()
    (old,) = run_database_folder(store.location).glob("*.sqlite")
    os.utime(old, (0, 0))
    stat = Path.stat

    def stat_and_delete(path, **options):
        found = stat(path, **options)
        if path == old:
            old.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "stat", stat_and_delete)
    database_of(store, 3).close(finished=True)
    assert list(run_database_folder(store.location).iterdir()) == []
