"""The pace of a worker: waiting for others counts neither as work nor against the time limit of an item."""

import asyncio
from types import SimpleNamespace

import pytest

from waygraph.pipeline.browser.session import GuardedPage
from waygraph.pipeline.explore.politeness.pace import Pace
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots


def pace(*, delay, item_seconds, slots=None):
    return Pace(Pacer(delay_seconds=delay), slots or Slots(1, most=1), item_seconds=item_seconds)


async def test_waiting_for_a_turn_does_not_count_against_the_time_limit_of_an_item():
    mine = pace(delay=0.3, item_seconds=0.2)
    async with mine.hold_slot(), mine.time_limit():
        for _ in range(3):
            async with mine.turn("http://a.test/"):
                pass


async def test_working_counts_against_the_time_limit_of_an_item():
    mine = pace(delay=0.0, item_seconds=0.05)
    with pytest.raises(TimeoutError):
        async with mine.hold_slot(), mine.time_limit():
            await asyncio.sleep(5)


async def test_a_worker_that_waits_for_another_one_releases_its_slot():
    slots = Slots(1, most=1)
    first, second = pace(delay=0.0, item_seconds=5, slots=slots), pace(delay=0.0, item_seconds=5, slots=slots)
    done = asyncio.Event()

    async def wait():
        async with first.hold_slot(), first.release_slot():
            await done.wait()

    async def work():
        async with second.hold_slot():
            done.set()

    async with asyncio.timeout(60):
        await asyncio.gather(wait(), work())
    assert slots.busy == 0


async def test_a_redirect_within_a_turn_waits_for_the_delay_and_not_for_that_turn():
    mine = pace(delay=0.2, item_seconds=0.5)
    view, guard = SimpleNamespace(delayed_s=0.0), SimpleNamespace(hold_navigations=False)
    page = GuardedPage(None, None, view, guard, SimpleNamespace(on=lambda *_: None), pacing=mine)
    arrived = []
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(60), mine.hold_slot(), mine.time_limit():
        async with page.view.navigation_turn("http://a.test/"):
            for path in ("", "1", "2"):
                await page.guard.before_document(f"http://a.test/{path}")
                arrived.append(asyncio.get_running_loop().time())
        async with page.view.navigation_turn("http://a.test/2"):
            arrived.append(asyncio.get_running_loop().time())
    # Counted from the start: a busy machine may notice the end of one wait later than that of the next.
    assert all(at - began >= 0.2 * turn - 0.001 for turn, at in enumerate(arrived))
    # Time before the request is sent does not count as latency of the host.
    assert 0.39 <= page.view.delayed_s < 60


async def test_a_lease_that_is_acquired_twice_at_once_holds_one_slot():
    slots = Slots(2, most=2)
    async with slots.lease() as lease:
        lease.release()
        await slots.acquire()
        await slots.acquire()
        both = asyncio.gather(lease.acquire(), lease.acquire())
        await asyncio.sleep(0)
        slots.release()
        slots.release()
        await both
        assert slots.busy == 1
    assert slots.busy == 0
