"""When does a call of `waygraph reencode` end, and what becomes of the sites that it has not done?"""

import asyncio
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from index.store import Store
from pipeline.jobs.report.outcomes import Publication
from pipeline.jobs.run import call, reencode
from pipeline.jobs.run.account import Account
from pipeline.jobs.run.budget import Budget
from pipeline.jobs.run.ledger import Ledger
from pipeline.jobs.run.manifest import ledgers, new_manifest
from pipeline.jobs.run.reencode import Reencoding
from pipeline.jobs.sites.site_list import plan_sites
from waygraph.cluster import Cluster
from waygraph.errors import StoreError
from waygraph.settings import Settings


class Publisher:
    """Stands for the publisher of a run: encodes the three states of any site at once, or never ends."""

    lost_workers = False
    ends = True

    def __init__(self, *_):
        self.actor = SimpleNamespace(progress=SimpleNamespace(remote=asyncio.Event().wait))

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
    """One call of a run over some sites."""
    cluster = Cluster((), SimpleNamespace(ended=False))
    monkeypatch.setattr(reencode, "Publisher", Publisher)
    monkeypatch.setattr(call, "_until_stopped", lambda _, __, work: work(cluster)(asyncio.Event()))
    monkeypatch.setattr(call, "ray_cluster", lambda **_: nullcontext(cluster))

    def one_call(sites, *, begin=None, **jobs):
        settings = Settings(store=str(tmp_path / "maps"), jobs=jobs)
        store, plan = Store.open(settings.store, create=True), plan_sites([f"site{i}.example" for i in range(sites)])
        ledger = Ledger.open(ledgers(settings.store), new_manifest(plan.tasks, settings, "reencode"), plan.tasks)
        if begin is not None:
            monkeypatch.setattr(ledger, "begin", lambda *_: begin)
        account = Account(ledger, store, budget=Budget(settings.jobs), on_event=lambda _: None)
        return call.on_ray(account, lambda found: Reencoding(account, settings, found).execute)

    return one_call


@pytest.mark.parametrize("sites", [1, 5])
def test_a_disk_that_is_full_is_the_outcome_of_every_site_and_exit_code_7(run, sites):
    full = Future()
    full.set_exception(StoreError("No space is left."))
    report = run(sites, begin=full)
    assert (report.exit_code, report.unfinished) == (7, sites)
    assert {site.error.message for site in report.sites} == {"No space is left."}


def test_a_budget_of_states_ends_a_call_and_the_next_one_goes_on(run):
    first = run(8, max_total_states=4)
    assert (first.stopped_by, first.exit_code) == ("max_total_states", 11)
    assert 2 <= first.totals.published < 8
    assert first.unfinished == first.totals.interrupted == 8 - first.totals.published
    last = run(8)
    assert (last.run_id, last.totals.published, last.exit_code, len(last.calls)) == (first.run_id, 8, 0, 2)
    assert last.findings.retried == 0


def test_a_call_whose_time_is_over_waits_for_what_is_in_work_and_not_for_ever(run, monkeypatch):
    monkeypatch.setattr(Publisher, "ends", False)
    first = run(3, max_total_seconds=0.001, publish_grace_seconds=0.01)
    assert (first.stopped_by, first.exit_code, first.unfinished) == ("max_total_seconds", 11, 3)
    monkeypatch.setattr(Publisher, "ends", True)
    last = run(3)
    assert (last.run_id, last.totals.published, last.exit_code) == (first.run_id, 3, 0)
    assert last.findings.retried == 0
