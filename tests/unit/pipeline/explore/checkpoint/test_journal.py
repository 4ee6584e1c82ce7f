"""The journal: acknowledged records survive any kill, exactly once, and a resumed run starts from them."""

import asyncio
import fcntl
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from waygraph.core.errors import InUse, StoreError
from waygraph.index.graph import Action, BlockedRequest, Box, Edge, Segment
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint import journal_file
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.journal_file import FileLease
from waygraph.pipeline.explore.checkpoint.journal_records import Checkpoint
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load, State

TERMS = {"start_url": "http://shop.test/", "depth": 3}
ROOT = Path(__file__).parents[5]


def candidate(i: int) -> Candidate:
    action = Action("click", role="link", name=f"link {i}", xpath=f"/html/body/a[{i}]", target=f"http://shop.test/{i}")
    return Candidate(action, "a", disabled=False, submits="", download=False, box=Box(0, i, 10, 10))


def look(i: int) -> Snapshot:
    return Snapshot(
        id=f"{i:032x}",
        url=f"http://shop.test/{i}",
        raw_url=f"http://shop.test/{i}?utm=1",
        title=f"Page {i}",
        content_type="text/html",
        status=200,
        structure=tuple(f"{i + k:032x}" for k in range(20)),
        candidates=(candidate(i), candidate(i + 1)),
        segments=(Segment("Hello", "heading", Box(1, 2, 3, 4)),),
        capped=False,
        opened=0,
        storage={"local": {"cart": "abc"}},
    )


def outcome(i: int) -> ActionOutcome:
    return ActionOutcome(
        node_id=f"{i:032x}",
        ms=1.5 + i,
        blocked=(BlockedRequest("POST", f"http://shop.test/{i}"),),
        dialogs=(f"alert: {i}",),
    )


def row(i: int) -> State:
    return State(f"{i:032x}", f"http://shop.test/{i}", f"Page {i}", f"{i:032x}.1", depth=i % 4)


def items(count: int) -> list[tuple[str, Candidate]]:
    return [(f"{i // 10:032x}", candidate(i)) for i in range(count)]


def census(journal: Journal) -> Counter[str]:
    return Counter(fate.status for fate in journal.fates())


def opened(folder: Path, **options):
    return closing(Journal.open(folder / "run.journal", TERMS, **options))


# ---- what comes back ------------------------------------------------------------------------------------------------


async def test_a_reopened_journal_returns_the_last_checkpoint_and_what_arrived_after_it(tmp_path):
    edges = [Edge(f"{i:032x}", f"{i + 1:032x}", candidate(i).action, cost_ms=2.5) for i in range(3)]
    with opened(tmp_path) as journal:
        assert journal.last() is None
        await journal.add_snapshot(look(0).id, look(0))
        await journal.begin_round(0, items(5), Checkpoint(states=[row(0)], counters={"browser/loads": 1}))
        await journal.record(0, 0, outcome(0))
        await journal.begin_round(
            1,
            items(30),
            Checkpoint([row(1), row(2)], edges, counters={"browser/loads": 4}, memories={"traps": {"groups": [1, 2]}}),
        )
        for i in (7, 3):
            await journal.record(1, i, outcome(i))
        await journal.record_load("http://shop.test/1", Load("a" * 32, 12.5))
        await journal.record_capture("b" * 32, ("1", "2", "3"))
    with opened(tmp_path) as journal:
        last = journal.last()
        assert (last.round, last.committed) == (1, 0)
        assert list(last.items) == items(30)
        assert last.outcomes == {3: outcome(3), 7: outcome(7)}
        assert last.states == [row(0), row(1), row(2)]
        assert last.edges == edges
        assert last.counters == {"browser/loads": 4}
        assert last.memories == {"traps": {"groups": [1, 2]}}
        assert last.loads == {"http://shop.test/1": Load("a" * 32, 12.5)}
        assert last.captures == {"b" * 32: ("1", "2", "3")}
        assert last.snapshot_keys == {look(0).id}
        assert journal.snapshot(look(0).id) == look(0)


async def test_records_committed_within_a_level_are_not_committed_again(tmp_path):
    with opened(tmp_path) as journal:
        await journal.begin_round(0, items(10), Checkpoint(states=[row(0)]))
        for i in range(6):
            await journal.record(0, i, outcome(i))
        await journal.save(
            0, 4, Checkpoint(states=[row(1)], fates=[ElementOutcome("s", "e", "skipped", "external", item=2)])
        )
    with opened(tmp_path) as journal:
        last = journal.last()
        assert (last.committed, sorted(last.outcomes), last.states) == (4, [4, 5], [row(0), row(1)])
        assert census(journal) == {"done": 5, "pending": 4, "skipped": 1}


async def test_snapshots_are_read_back_from_memory_and_disk_and_before_they_are_written(tmp_path):
    with opened(tmp_path) as journal:
        writing = [asyncio.ensure_future(journal.add_snapshot(look(i).id, look(i))) for i in range(200)]
        await asyncio.sleep(0)
        assert journal.snapshot(look(199).id) == look(199)
        await asyncio.gather(*writing)
        assert all(journal.snapshot(look(i).id) == look(i) for i in range(200))
        with pytest.raises(KeyError):
            journal.snapshot("f" * 32)


async def test_first_snapshot_stored_under_a_key_is_kept(tmp_path):
    first, second = look(1), Snapshot(**{**{n: getattr(look(2), n) for n in Snapshot.__slots__}, "id": look(1).id})
    with opened(tmp_path) as journal:
        await asyncio.gather(journal.add_snapshot(first.id, first), journal.add_snapshot(first.id, second))
        await journal.add_snapshot(first.id, second)
        await journal.begin_round(0, items(1), Checkpoint())
    with opened(tmp_path) as journal:
        await journal.add_snapshot(first.id, second)
        assert journal.snapshot(first.id) == first


async def test_every_element_has_exactly_one_outcome(tmp_path):
    with opened(tmp_path) as journal:
        by_policy = ElementOutcome("s", 'click link "Delete"', "skipped", "hazard")
        await journal.begin_round(0, items(4), Checkpoint(fates=[by_policy]))
        for i in range(4):
            await journal.record(0, i, outcome(i))
        failed = ElementOutcome("s", "x", "failed", "It takes no pointer.", item=1)
        await journal.begin_round(1, items(3), Checkpoint(fates=[failed]))
        await journal.record(1, 0, outcome(0))
        await journal.record(1, 1, outcome(1))
        current = [
            ElementOutcome("s", "y", "skipped", "external", item=1),
            ElementOutcome("s", "z", "skipped", "second_tab"),
        ]
        fates = list(journal.fates(current))
        assert [(f.item, f.status, f.reason) for f in fates] == [
            (0, "done", ""),
            (1, "failed", "It takes no pointer."),
            (2, "done", ""),
            (3, "done", ""),
            (0, "done", ""),
            (1, "skipped", "external"),
            (2, "pending", ""),
            (None, "skipped", "hazard"),
            (None, "skipped", "second_tab"),
        ]
        assert fates[0].element == 'click link "link 0"'


async def test_texts_with_lone_surrogates_are_read_back_unchanged(tmp_path):
    odd = Load("net::ERR \ud800", 1.0)
    with opened(tmp_path) as journal:
        await journal.begin_round(0, [("\udfff", candidate(0))], Checkpoint(memories={"m": ["\ud83d"]}))
        await journal.record_load("http://shop.test/\ud800", odd)
    with opened(tmp_path) as journal:
        last = journal.last()
        assert list(last.items) == [("\udfff", candidate(0))]
        assert last.loads == {"http://shop.test/\ud800": odd}
        assert last.memories == {"m": ["\ud83d"]}


# ---- files that cannot be resumed -----------------------------------------------------------------------------------


async def leave_a_run(folder: Path, count: int = 50) -> Path:
    with opened(folder) as journal:
        for i in range(count):
            await journal.add_snapshot(look(i).id, look(i))
        await journal.begin_round(0, items(count), Checkpoint(states=[row(i) for i in range(count)]))
        await journal.record(0, 0, outcome(0))
    return folder / "run.journal"


async def test_run_with_other_settings_is_set_aside_and_logged(tmp_path, caplog):
    path = await leave_a_run(tmp_path)
    with closing(Journal.open(path, {**TERMS, "depth": 4})) as journal:
        assert journal.last() is None
        assert "other terms (depth)" in caplog.text
        assert sorted(file.name for file in tmp_path.glob("*.stale*")) == ["run.journal.stale"]


async def test_resumed_run_knows_the_secrets_of_stored_snapshots(tmp_path):
    path = await leave_a_run(tmp_path)
    for secrets in ({"sid-77aa88bb"}, {"key-91b2c3d4", "sid-77aa88bb"}, {"key-91b2c3d4"}):
        with closing(Journal.open(path, TERMS)) as journal:
            await journal.withhold(secrets)
    with closing(Journal.open(path, TERMS)) as journal:
        assert journal.withheld() == {"key-91b2c3d4", "sid-77aa88bb"}


async def test_starting_without_resume_sets_the_run_aside(tmp_path):
    path = await leave_a_run(tmp_path)
    for _ in range(2):
        with closing(Journal.open(path, TERMS, resume=False)) as journal:
            assert journal.last() is None
            await journal.begin_round(0, items(1), Checkpoint())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.journal", "run.journal.stale"]


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be one" * 100, b"SQLite format 3\0"])
async def test_file_that_is_not_a_journal_is_set_aside(tmp_path, content):
    (tmp_path / "run.journal").write_bytes(content)
    with opened(tmp_path) as journal:
        assert journal.last() is None
        await journal.begin_round(0, items(1), Checkpoint())
    with opened(tmp_path) as journal:
        assert journal.last() is not None


async def test_other_sqlite_database_is_set_aside(tmp_path):
    with closing(sqlite3.connect(tmp_path / "run.journal")) as db:
        db.execute("CREATE TABLE meta (a, b, c)")
        db.commit()
    with opened(tmp_path) as journal:
        assert journal.last() is None
        await journal.begin_round(0, items(1), Checkpoint())
    assert (tmp_path / "run.journal.stale").exists()


async def test_any_damage_gives_a_new_run_or_a_clear_error(tmp_path):
    path = await leave_a_run(tmp_path)
    sound, chance = path.read_bytes(), random.Random(7)
    for _ in range(int(os.environ.get("WAYGRAPH_JOURNAL_DAMAGES", "30"))):
        damaged = bytearray(sound[: chance.choice([len(sound), chance.randrange(len(sound))])])
        for _ in range(chance.choice([0, 1, 40])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        with opened(tmp_path) as journal:
            try:
                for node_id in last.snapshot_keys if (last := journal.last()) is not None else ():
                    journal.snapshot(node_id)
                list(journal.fates())
                await journal.begin_round(1, items(20), Checkpoint(states=[row(3)]))
            except StoreError as error:
                assert error.hint  # noqa: PT017 - either is right


# ---- one owner, and machines that fail ------------------------------------------------------------------------------


async def test_second_owner_gets_an_error_that_names_the_first(tmp_path):
    with opened(tmp_path), pytest.raises(StoreError, match=f"process {os.getpid()} on"):
        Journal.open(tmp_path / "run.journal", TERMS)
    with opened(tmp_path):
        pass


def test_checking_a_lease_does_not_prevent_others_from_taking_it(tmp_path, monkeypatch):
    """A check takes a shared lock briefly; here it is released after the other process has waited twice."""
    path, waits = tmp_path / "run.lock", []
    path.touch()
    look = os.open(path, os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            os.close(look)

    monkeypatch.setattr(journal_file.time, "sleep", wait)
    lease = FileLease.take(path)
    assert len(waits) == 2
    assert FileLease.is_held(path)
    with pytest.raises(InUse, match=f"process {os.getpid()} on"):
        FileLease.take(path)
    lease.release()
    assert not FileLease.is_held(path)


def test_unreadable_lease_counts_as_held(tmp_path, monkeypatch):
    """A lease of another user. The error is simulated, since tests may run as root."""

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(journal_file.os, "open", refuse)
    assert FileLease.is_held(tmp_path / "run.lock")


async def test_journal_is_private_and_uses_no_shared_memory(tmp_path):
    """Network file systems cannot share memory between processes: SQLite must not ask for it."""
    with opened(tmp_path) as journal:
        await journal.begin_round(0, items(3), Checkpoint())
        assert sorted(file.name for file in tmp_path.iterdir()) == [
            "run.journal",
            "run.journal-wal",
            "run.journal.lock",
        ]
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
        with (
            closing(sqlite3.connect(tmp_path / "run.journal", timeout=0)) as db,
            pytest.raises(sqlite3.OperationalError),
        ):
            db.execute("SELECT * FROM meta").fetchall()


def test_unwritable_folder_gives_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file" / "run.journal", Path("/proc/nowhere/run.journal")):
        with pytest.raises(StoreError, match="cannot be used"):
            Journal.open(path, TERMS)
    (tmp_path / "run.journal").mkdir()
    with pytest.raises(StoreError, match="cannot be used"):
        Journal.open(tmp_path / "run.journal", TERMS)


async def test_full_disk_fails_the_write_and_keeps_earlier_records(tmp_path):
    with opened(tmp_path) as journal:
        await journal.begin_round(0, items(10), Checkpoint(states=[row(0)]))
        await journal.record(0, 0, outcome(0))
        # What SQLite reports when a file may not grow is the same error.
        pages = journal._file.read("PRAGMA page_count")[0][0]
        journal._file.read(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreError, match="full"):
            await journal.begin_round(1, items(5_000), Checkpoint(states=[row(1)]))
        assert [*journal.fates()][9].status == "pending"
        journal._file.read(f"PRAGMA max_page_count = {pages + 10_000}")
        await journal.record(0, 1, outcome(1))
    with opened(tmp_path) as journal:
        last = journal.last()
        assert (last.round, sorted(last.outcomes), last.states) == (0, [0, 1], [row(0)])


async def test_file_size_limit_gives_a_clear_error(tmp_path):
    with opened(tmp_path) as journal:
        await journal.begin_round(0, items(10), Checkpoint())
        await journal.record(0, 0, outcome(0))
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, old[1]))
        try:
            with pytest.raises(StoreError, match="Check space"):
                await journal.begin_round(1, items(20_000), Checkpoint())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
            signal.signal(signal.SIGXFSZ, ignored)
    with opened(tmp_path) as journal:
        assert (journal.last().round, sorted(journal.last().outcomes)) == (0, [0])


async def test_cancelled_write_is_completed_and_others_are_unaffected(tmp_path):
    with opened(tmp_path) as journal:
        await journal.begin_round(0, items(300), Checkpoint())
        tasks = [asyncio.create_task(journal.record(0, i, outcome(i))) for i in range(300)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    with opened(tmp_path) as journal:
        kept = journal.last().outcomes
        assert kept == {i: outcome(i) for i in range(300)}


async def test_writes_after_close_are_refused(tmp_path):
    with opened(tmp_path) as journal:
        pass
    with pytest.raises(StoreError, match="closed"):
        await journal.record(0, 0, outcome(0))


async def test_record_that_cannot_be_encoded_fails_alone(tmp_path):
    with opened(tmp_path) as journal:
        await journal.begin_round(0, items(3), Checkpoint())
        good, bad = journal.record(0, 0, outcome(0)), journal.record(0, 1, object())
        results = await asyncio.gather(good, bad, journal.record(0, 2, outcome(2)), return_exceptions=True)
        assert isinstance(results[1], TypeError)
    with opened(tmp_path) as journal:
        assert sorted(journal.last().outcomes) == [0, 2]


# ---- kill -9 --------------------------------------------------------------------------------------------------------


def test_kills_neither_lose_nor_repeat_acknowledged_records(tmp_path):
    """A process that explores generated sites of 3 levels is killed at random moments; the next one resumes."""
    kills, sites = int(os.environ.get("WAYGRAPH_JOURNAL_KILLS", "20")), 0
    chance = random.Random(3)
    # It imports once and forks for every run: most of a run's time would be imports.
    with subprocess.Popen(
        [sys.executable, "-c", "from tests.unit.pipeline.explore.checkpoint.journal_victim import serve; serve()"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as victim:
        while kills > 0 or sites == 0:
            folder = tmp_path / str(sites)
            kills = explore_under_fire(victim, folder, kills, chance)
            with opened(folder) as journal:
                last = journal.last()
                assert last.round == 3
                assert [state.title for state in last.states] == [f"Page {i}" for i in range(1 + 3 * 200)]
                assert len(last.edges) == 3 * 200
                assert census(journal) == {"done": 600}
                assert last.snapshot_keys == {look(i).id for i in range(1 + 3 * 200)}
            sites += 1
        victim.stdin.close()


def explore_under_fire(victim: subprocess.Popen, folder: Path, kills: int, chance: random.Random) -> int:
    """Explore the site in `folder` with killed processes until one finishes; return the kills left."""
    acknowledged, through = set(), False
    while not through:
        victim.stdin.write(f"{folder}\n")
        victim.stdin.flush()
        pid, lines, through = int(victim.stdout.readline()), 0, True
        fatal = chance.choice([0, chance.randrange(60)]) if kills else -1
        while (line := victim.stdout.readline()) != "over\n":
            assert line, "the process that forks died"
            assert not line.startswith("problem"), line
            if line.startswith("recorded"):
                assert line not in acknowledged, f"done twice, although acknowledged: {line}"
                acknowledged.add(line)
            if lines == fatal:
                # From begin to end of a transaction it takes about a millisecond.
                signal.sigtimedwait([], chance.uniform(0, 0.002))
                os.kill(pid, signal.SIGKILL)
                kills, through = kills - 1, False
            lines += 1
    assert len(acknowledged) <= 600
    return kills
