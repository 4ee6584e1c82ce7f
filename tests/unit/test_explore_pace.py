"""Does waiting for others count neither as work nor against the time of an item?"""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

import pytest

from pipeline.browser.session import GuardedPage
from pipeline.explore.pace import Pace
from pipeline.explore.pacing import Pacer
from pipeline.explore.slots import Slots


def pace(*, delay, item_seconds, slots=None):
    return Pace(Pacer(delay_seconds=delay), slots or Slots(1, most=1), item_seconds=item_seconds)


async def test_waiting_for_a_turn_does_not_count_against_the_time_of_an_item():
    mine = pace(delay=0.3, item_seconds=0.2)
    async with mine.busy(), mine.limited():
        for _ in range(3):
            async with mine.turn("http://a.test/"):
                pass


async def test_working_for_too_long_does():
    mine = pace(delay=0.0, item_seconds=0.05)
    with pytest.raises(TimeoutError):
        async with mine.busy(), mine.limited():
            await asyncio.sleep(5)


async def test_whoever_waits_for_another_one_leaves_the_slot_to_it():
    slots = Slots(1, most=1)
    first, second = pace(delay=0.0, item_seconds=5, slots=slots), pace(delay=0.0, item_seconds=5, slots=slots)
    done = asyncio.Event()

    async def wait():
        async with first.busy(), first.idle():
            await done.wait()

    async def work():
        async with second.busy():
            done.set()

    async with asyncio.timeout(5):
        await asyncio.gather(wait(), work())
    assert slots.busy == 0


async def test_a_redirect_within_a_turn_waits_for_the_delay_and_not_for_that_turn():
    mine = pace(delay=0.1, item_seconds=0.2)
    page = GuardedPage(None, None, SimpleNamespace(held_back_s=0.0), SimpleNamespace(hold=False), mine)
    arrived = []
    async with asyncio.timeout(5), mine.busy(), mine.limited():
        async with page.view.turn("http://a.test/"):
            for path in ("", "1", "2"):
                await page.guard.before_document(f"http://a.test/{path}")
                arrived.append(asyncio.get_running_loop().time())
        async with page.view.turn("http://a.test/2"):
            arrived.append(asyncio.get_running_loop().time())
    assert all(later - earlier >= 0.099 for earlier, later in pairwise(arrived))
    # What the host was not asked for does not count as its slowness.
    assert 0.19 <= page.view.held_back_s < 1


async def test_one_lease_takes_one_slot_whoever_asks_for_it_at_once():
    slots = Slots(2, most=2)
    async with slots.lease() as lease:
        lease.give_back()
        await slots.take()
        await slots.take()
        both = asyncio.gather(lease.take(), lease.take())
        await asyncio.sleep(0)
        slots.give_back()
        slots.give_back()
        await both
        assert slots.busy == 1
    assert slots.busy == 0
