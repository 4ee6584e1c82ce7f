"""Sites are shared out evenly among explorers, and one that may have killed an explorer gets one for itself."""

import asyncio
import inspect
from contextlib import AsyncExitStack

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.explore.journal_file import Lease
from pipeline.jobs.exploring.explorer_actor import ExplorerActor
from pipeline.jobs.exploring.seats import Seats
from pipeline.jobs.unfinished_work import drop_journal, journal_path
from tests.virtual_time import run_virtually


def test_the_explorer_with_the_fewest_sites_takes_the_next_one_and_a_full_house_waits():
    async def scenario() -> tuple[list[int], bool, list[int]]:
        seats = Seats(2, 2)
        async with AsyncExitStack() as taken:
            for _ in range(3):
                await taken.enter_async_context(seats.take())
            shared = sorted(explorer.sites for explorer in seats.explorers)
            await taken.enter_async_context(seats.take())
            waiting = asyncio.ensure_future(taken.enter_async_context(seats.take()))
            await asyncio.sleep(1)
            full = not waiting.done()
            waiting.cancel()
            await asyncio.wait([waiting])
        return shared, full, [explorer.sites for explorer in seats.explorers]

    assert run_virtually(scenario()) == ([1, 2], True, [0, 0])


def test_nobody_joins_an_explorer_that_has_no_room_until_it_is_tried_again_or_there_is_no_other():
    async def scenario() -> tuple[bool, bool, bool]:
        seats = Seats(2, 2)
        first, second = seats.explorers
        seats.avoid(second, 60)
        async with seats.take() as one, seats.take() as other, AsyncExitStack() as taken:
            full = asyncio.ensure_future(taken.enter_async_context(seats.take()))
            await asyncio.sleep(59)
            waited = not full.done()
            later = await full
        for explorer in seats.explorers:
            seats.avoid(explorer, 60)
        async with seats.take(alone=True) as only:
            pass
        return one is other is first, waited and later is second, only in seats.explorers

    assert run_virtually(scenario()) == (True, True, True)


tasks = st.tuples(st.booleans(), st.floats(0, 5), st.floats(0, 5), st.booleans())


@settings(max_examples=200)
@given(st.lists(tasks, max_size=20), st.integers(1, 3), st.integers(1, 4))
def test_whoever_wants_to_be_alone_is_and_everybody_gets_a_seat(tasks, explorers, each):
    async def scenario() -> int:
        seats, served = Seats(explorers, each), []
        inside = {explorer: [] for explorer in seats.explorers}

        async def explore(alone: bool, seconds: float) -> None:
            async with seats.take(alone=alone) as explorer:
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
        assert [(explorer.sites, explorer.reserved) for explorer in seats.explorers] == [(0, False)] * explorers
        return len(served)

    assert run_virtually(scenario()) >= sum(not cancelled for *_, cancelled in tasks)


def test_no_method_of_an_explorer_is_async_or_ray_would_let_it_answer_nothing_while_it_explores():
    assert not inspect.getmembers(ExplorerActor, inspect.iscoroutinefunction)


def test_a_journal_lies_in_a_local_store_and_is_dropped_unless_somebody_uses_it(tmp_path, monkeypatch):
    path = journal_path(str(tmp_path / "maps"), "[::1]:8000")
    assert path == tmp_path / "maps" / "runs" / "journals" / "___1__8000.sqlite"
    drop_journal(path)  # there is none
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    used = Lease.take(path.with_name(f"{path.name}.lock"))
    drop_journal(path)
    assert path.exists()
    used.release()
    drop_journal(path)
    assert list(path.parent.iterdir()) == []

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    remote = journal_path("s3://bucket/maps", "a.example")
    assert remote.name == "a.example.sqlite"
    assert remote.is_relative_to(tmp_path / "cache" / "waygraph")
    assert remote != journal_path("s3://bucket/other", "a.example")
