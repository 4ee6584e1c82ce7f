"""What does the ledger of a run make of damage, of races with others, and of texts that cannot be written down?"""

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from index.graph import InteractionGraph
from index.store import Store
from pipeline.explore.capture import ExploreReport, Failure, SiteCapture
from pipeline.jobs.exploring.explorer_actor import _account as account_of_exploring
from pipeline.jobs.report.outcomes import Publication
from pipeline.jobs.report.report_file import read_report
from pipeline.jobs.run.account import Account
from pipeline.jobs.run.budget import Budget
from pipeline.jobs.run.ledger import Ledger
from pipeline.jobs.run.manifest import ledgers, new_manifest
from pipeline.jobs.sites.site_list import plan_sites
from waygraph.errors import SiteUnreachable
from waygraph.settings import Settings

HALF, MARK = "\ud83d", "\N{REPLACEMENT CHARACTER}"
SITES = 12


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "maps"), create=True)


def explored(text):
    """The account of an exploration in which a page said `text`."""
    failure = Failure("a" * 32, f'click link "{text}"', f"It is covered by <b>{text}")
    report = ExploreReport("http://a.example/", 1.0, partial=False, stopped_by="", depths=(), counters={},
                           failures=(failure,), advice=(text,))  # fmt: skip
    return account_of_exploring(SiteCapture("a.example", report.start_url, InteractionGraph(), {}, report), 1.0, 0.0)


def ledger_of(store, sites=SITES):
    plan = plan_sites([f"site{i}.example" for i in range(sites)])
    return Ledger.open(
        ledgers(store.location), new_manifest(plan.tasks, Settings(store=store.location), "index"), plan.tasks
    )


def account_of(store, sites=SITES):
    return Account(ledger_of(store, sites), store, budget=Budget(Settings().jobs), on_event=lambda _: None)


def finish(account, site, text="text"):
    account.begin(site)
    account.explored(site, explored(text))
    made = Publication(version=1, encoded=3, reused=0, encode_seconds=0.1, publish_seconds=0.1, states=3)
    account.finish(site, "published", publication=made)


def leave_a_run(store):
    """A run of which some sites are finished, some explored, some not begun; its id and its file."""
    account = account_of(store)
    for site in account.sites[:5]:
        finish(account, site)
    account.begin(account.sites[5])
    account.explored(account.sites[5], explored("text"))
    account.stopped_by = "signal"
    account.close()
    (path,) = ledgers(store.location).glob("*.sqlite")
    return account.run_id, path


def test_half_a_character_of_a_page_settles_its_site_like_any_other_text(store):
    """Such as what is left of an emoji that a script cut: UTF-8 cannot spell it."""
    account = account_of(store, 2)
    finish(account, account.sites[0], HALF)
    account.finish(account.sites[1], "failed", error=SiteUnreachable(f"It says {HALF}", hint=HALF))
    account._ledger.flush()
    assert account._ledger.settled() == 2
    report = account.close()
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
def test_a_ledger_with_a_row_that_nobody_can_read_is_set_aside_at_once(store, damage, caplog):
    """Not hours later, when the report is made, and then by every call again."""
    run, path = leave_a_run(store)
    with closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        db.commit()
    account = account_of(store)
    assert account.run_id != run
    assert len(account.unfinished) == SITES
    assert "ledger/set_aside" in caplog.text
    assert path.with_name(f"{path.name}.stale").exists()


def test_any_damage_ends_in_a_run_that_goes_on_or_begins_anew(store):
    run, path = leave_a_run(store)
    sound, chance, anew = path.read_bytes(), random.Random(11), 0
    for _ in range(25):
        damaged = bytearray(sound)
        for _ in range(chance.choice([0, 1, 40])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])
        account = account_of(store)
        anew += account.run_id != run
        report = account.close()
        assert (len(report.sites), report.unfinished) == (SITES, SITES if account.run_id != run else SITES - 5)
    assert 0 < anew < 25


def test_a_sound_ledger_passes_its_check(store):
    run, path = leave_a_run(store)
    assert account_of(store).run_id == run
    assert not path.with_name(f"{path.name}.stale").exists()


def test_an_old_ledger_that_its_owner_takes_along_meanwhile_is_nothing_to_stumble_over(store, monkeypatch):
    account_of(store, 2).close()
    (old,) = ledgers(store.location).glob("*.sqlite")
    os.utime(old, (0, 0))
    look = Path.stat

    def look_and_lose(path, **options):
        found = look(path, **options)
        if path == old:
            old.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "stat", look_and_lose)
    ledger_of(store, 3).close(finished=True)
    assert list(ledgers(store.location).iterdir()) == []
