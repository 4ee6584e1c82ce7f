"""Worker slots: sites are distributed evenly among explorers; a site that may have killed an explorer runs alone."""

import asyncio
import inspect
from contextlib import AsyncExitStack

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.virtual_time import run_virtually
from waygraph.pipeline.explore.checkpoint.journal_file import FileLease
from waygraph.pipeline.jobs.exploring.explorer_actor import ExplorerActor
from waygraph.pipeline.jobs.exploring.worker_slots import WorkerSlots
from waygraph.pipeline.jobs.work_files import journal_path, remove_journal


def test_explorer_with_the_fewest_sites_gets_the_next_one_and_take_blocks_when_all_are_full():
    async def scenario() -> tuple[list[int], bool, list[int]]:
        slots = WorkerSlots(2, 2)
        async with AsyncExitStack() as taken:
            for _ in range(3):
                await taken.enter_async_context(slots.take())
            shared = sorted(explorer.sites for explorer in slots.explorers)
            await taken.enter_async_context(slots.take())
            waiting = asyncio.ensure_future(taken.enter_async_context(slots.take()))
            await asyncio.sleep(1)
            full = not waiting.done()
            waiting.cancel()
            await asyncio.wait([waiting])
        return shared, full, [explorer.sites for explorer in slots.explorers]

    assert run_virtually(scenario()) == ([1, 2], True, [0, 0])


def test_full_explorer_gets_no_sites_until_retried_or_only_one_left():
    async def scenario() -> tuple[bool, bool, bool]:
        slots = WorkerSlots(2, 2)
        first, second = slots.explorers
        slots.avoid(second, 60)
        async with slots.take() as one, slots.take() as other, AsyncExitStack() as taken:
            full = asyncio.ensure_future(taken.enter_async_context(slots.take()))
            await asyncio.sleep(59)
            waited = not full.done()
            later = await full
        for explorer in slots.explorers:
            slots.avoid(explorer, 60)
        async with slots.take(alone=True) as only:
            pass
        return one is other is first, waited and later is second, only in slots.explorers

    assert run_virtually(scenario()) == (True, True, True)


tasks = st.tuples(st.booleans(), st.floats(0, 5), st.floats(0, 5), st.booleans())


@settings(max_examples=200)
@given(st.lists(tasks, max_size=20), st.integers(1, 3), st.integers(1, 4))
def test_site_that_must_run_alone_does_and_every_site_gets_a_slot(tasks, explorers, each):
    async def scenario() -> int:
        slots, served = WorkerSlots(explorers, each), []
        inside = {explorer: [] for explorer in slots.explorers}

        async def explore(alone: bool, seconds: float) -> None:
            async with slots.take(alone=alone) as explorer:
                inside[explorer].append(alone)
                try:
                    assert len(inside[explorer]) == explorer.sites <= each
                    assert not any(inside[explorer]) or len(inside[explorer]) == 1
                    await asyncio.sleep(seconds)
                    served.append(alone)
                finally:
                    inside[explorer].remove(alone)

        async def site(alone: bool, start: float, seconds: float, cancelled: bool) -> None:
            await asyncio.sleep(start)
            work = asyncio.ensure_future(explore(alone, seconds))
            if cancelled:
                await asyncio.sleep(seconds / 2)
                work.cancel()
            await asyncio.wait([work])
            assert work.cancelled() or work.exception() is None

        await asyncio.gather(*(site(*task) for task in tasks))
        assert [(explorer.sites, explorer.reserved) for explorer in slots.explorers] == [(0, False)] * explorers
        return len(served)

    assert run_virtually(scenario()) >= sum(not cancelled for *_, cancelled in tasks)


def test_explorer_actor_has_no_async_methods():
    assert not inspect.getmembers(ExplorerActor, inspect.iscoroutinefunction)


def test_journal_is_in_a_local_store_or_cache_and_removed_unless_in_use(tmp_path, monkeypatch):
    path = journal_path(str(tmp_path / "maps"), "[::1]:8000")
    assert path == tmp_path / "maps" / "runs" / "journals" / "___1__8000.sqlite"
    remove_journal(path)  # there is none
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    used = FileLease.take(path.with_name(f"{path.name}.lock"))
    remove_journal(path)
    assert path.exists()
    used.release()
    remove_journal(path)
    assert list(path.parent.iterdir()) == []

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    remote = journal_path("s3://bucket/maps", "a.example")
    assert remote.name == "a.example.sqlite"
    assert remote.is_relative_to(tmp_path / "cache" / "waygraph")
    assert remote != journal_path("s3://bucket/other", "a.example")
