"""End of an invocation of `waygraph reencode`: full disk, budgets, and the sites that remain."""

import asyncio
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from waygraph.core.errors import StoreError
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.jobs.report.outcomes import Publication
from waygraph.pipeline.jobs.run import invocation as call
from waygraph.pipeline.jobs.run import reencode
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.manifest import new_manifest, run_database_folder
from waygraph.pipeline.jobs.run.reencode import ReencodeCoordinator
from waygraph.pipeline.jobs.run.run_database import RunDatabase
from waygraph.pipeline.jobs.run.run_state import RunState
from waygraph.pipeline.jobs.sites.site_list import plan_sites


class Publisher:
    """Stands for the publisher of a run: encodes the three states of any site at once, or never ends."""

    lost_workers = False
    ends = True

    def __init__(self, *_):
        self.actor = SimpleNamespace(call=lambda _: asyncio.Event().wait())

    async def load(self):
        pass

    async def call(self, *_):
        if not self.ends:
            await asyncio.Event().wait()
        return Publication(version=2, encoded=3, reused=0, encode_seconds=0, publish_seconds=0, states=3)

    async def report(self):
        pass


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run one invocation over a number of sites."""
    actors = SimpleNamespace(ends_with_coordinator=True, exports_metrics=False)
    monkeypatch.setattr(reencode, "PublisherClient", Publisher)
    monkeypatch.setattr(call, "_execute", lambda _, __, connect: connect(actors)(asyncio.Event()))
    monkeypatch.setattr(call, "actor_system", lambda *_, **__: nullcontext(actors))

    def invoke(sites, *, begin=None, **jobs):
        settings = Settings(store=str(tmp_path / "maps"), jobs=jobs)
        store, plan = Store.open(settings.store, create=True), plan_sites([f"site{i}.example" for i in range(sites)])
        database = RunDatabase.open(
            run_database_folder(settings.store), new_manifest(plan.tasks, settings, "reencode"), plan.tasks
        )
        if begin is not None:
            monkeypatch.setattr(database, "begin", lambda *_: begin)
        state = RunState(database, store, budget=RunBudget(settings.jobs), on_event=lambda _: None)
        return call.execute(state, settings, lambda found: ReencodeCoordinator(state, settings, found).execute)

    return invoke


@pytest.mark.parametrize("sites", [1, 5])
def test_full_disk_fails_every_site_with_exit_code_7(run, sites):
    full = Future()
    full.set_exception(StoreError("No space is left."))
    report = run(sites, begin=full)
    assert (report.exit_code, report.unfinished) == (7, sites)
    assert {site.error.message for site in report.sites} == {"No space is left."}


def test_state_budget_ends_an_invocation_and_the_next_one_resumes(run):
    first = run(8, max_total_states=4)
    assert (first.stopped_by, first.exit_code) == ("max_total_states", 11)
    assert 2 <= first.totals.published < 8
    assert first.unfinished == first.totals.interrupted == 8 - first.totals.published
    last = run(8)
    assert (last.run_id, last.totals.published, last.exit_code, len(last.calls)) == (first.run_id, 8, 0, 2)
    assert last.findings.retried == 0


def test_invocation_over_its_time_budget_waits_a_limited_time_for_sites_in_work(run, monkeypatch):
    monkeypatch.setattr(Publisher, "ends", False)
    first = run(3, max_total_seconds=0.001, publish_grace_seconds=0.01)
    assert (first.stopped_by, first.exit_code, first.unfinished) == ("max_total_seconds", 11, 3)
    monkeypatch.setattr(Publisher, "ends", True)
    last = run(3)
    assert (last.run_id, last.totals.published, last.exit_code) == (first.run_id, 3, 0)
    assert last.findings.retried == 0
