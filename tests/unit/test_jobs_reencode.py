"""What becomes of a run of `waygraph reencode` when its ledger cannot be written any more?"""

import asyncio
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from index.store import Store
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
    """One that has nothing to do: no site gets as far as it."""

    lost_workers = False

    def __init__(self, *_):
        self.actor = SimpleNamespace(progress=SimpleNamespace(remote=asyncio.Event().wait))

    async def load(self):
        pass

    async def report(self):
        pass


@pytest.mark.parametrize("sites", [1, 5])
def test_a_disk_that_is_full_is_the_outcome_of_every_site_and_exit_code_7(tmp_path, monkeypatch, sites):
    settings = Settings(store=str(tmp_path / "maps"))
    store, plan = Store.open(settings.store, create=True), plan_sites([f"site{i}.example" for i in range(sites)])
    ledger = Ledger.open(ledgers(settings.store), new_manifest(plan.tasks, settings, "reencode"), plan.tasks)
    account = Account(ledger, store, budget=Budget(settings.jobs), on_event=lambda _: None)
    full = Future()
    full.set_exception(StoreError("No space is left."))
    monkeypatch.setattr(ledger, "begin", lambda *_: full)
    monkeypatch.setattr(reencode, "Publisher", Publisher)
    cluster = Cluster((), SimpleNamespace(ended=False))
    monkeypatch.setattr(call, "_until_stopped", lambda _, __, work: work(cluster)(asyncio.Event()))
    monkeypatch.setattr(call, "ray_cluster", lambda **_: nullcontext(cluster))
    report = call.on_ray(account, lambda found: Reencoding(account, settings, found).execute)
    assert (report.exit_code, report.unfinished) == (7, sites)
    assert {site.error.message for site in report.sites} == {"No space is left."}
