"""Does waiting for others count neither as work nor against the time of an item?"""

import asyncio

import pytest

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
