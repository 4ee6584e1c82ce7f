"""Callers take turns in queues, whoever sends more."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.errors import Overloaded
from waygraph.serve.query.caller_queue import CALLER, CallerQueue, CallerSlots


def filled(max_items: int, items: Iterable[str]) -> tuple[CallerQueue[str], list[str]]:
    """Return a queue, and the items that had to leave it; the first letter of an item is its caller."""
    queue: CallerQueue[str] = CallerQueue(max_items)
    displaced = []
    for item in items:
        CALLER.set(item[0])
        if (left := queue.add(item)) is not None:
            displaced.append(left)
    return queue, displaced


def test_callers_take_turns_and_keep_their_own_order() -> None:
    queue, _ = filled(9, ["a1", "a2", "a3", "b1", "c1", "c2"])
    assert [queue.pop() for _ in range(len(queue))] == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_the_caller_that_has_most_makes_room_for_one_that_has_less() -> None:
    queue, displaced = filled(4, ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1"])
    assert displaced[:3] == ["a4", "a3", "b3"]
    assert sorted(Counter(queue.pop()[0] for _ in range(len(queue))).values()) == [1, 1, 2]


@given(st.lists(st.sampled_from("abcd"), max_size=60), st.integers(1, 8), st.data())
def test_a_queue_is_full_before_an_item_leaves_it(callers: list[str], size: int, data: st.DataObject) -> None:
    items = [f"{caller}{number}" for number, caller in enumerate(callers)]
    queue, displaced = filled(size, items)
    assert len(queue) == min(size, len(items))
    left = [item for item in items if item not in displaced]
    assert len(left) == len(queue)
    if left:
        gone = data.draw(st.sampled_from(left))
        queue.remove(gone)
        left.remove(gone)
        queue.remove(gone)
    assert sorted(queue.pop() for _ in range(len(queue))) == sorted(left)
    # Whoever lost an item had about as many as anyone, or more.
    counts = Counter(item[0] for item in left)
    for caller in {item[0] for item in displaced}:
        assert counts[caller] >= max(counts.values(), default=0) - 2


class Work:
    """Work that needs a slot, and ends when it is let."""

    def __init__(self, slots: CallerSlots) -> None:
        self.slots = slots
        self.order: list[str] = []
        self.let = asyncio.Event()

    def start(self, name: str) -> asyncio.Task[None]:
        async def work() -> None:
            CALLER.set(name[0])
            async with self.slots:
                self.order.append(name)
                await self.let.wait()

        return asyncio.create_task(work())


@pytest.fixture
def work() -> Work:
    return Work(CallerSlots(1, 3, lambda: None))


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def test_slots_go_to_callers_by_turns(work: Work) -> None:
    tasks = [work.start(name) for name in ("a1", "a2", "a3", "b1")]
    await turns()
    assert (work.slots.taken, work.slots.waiting) == (1, 3)
    refused = work.start("a4")
    with pytest.raises(Overloaded):
        await refused
    late = work.start("c1")  # makes one of those that wait leave
    await turns()
    work.let.set()
    results = await asyncio.gather(*tasks, late, return_exceptions=True)
    assert [isinstance(each, Overloaded) for each in results] == [False, False, True, False, False]
    assert work.order == ["a1", "a2", "b1", "c1"]
    assert (work.slots.taken, work.slots.waiting) == (0, 0)


async def test_one_that_is_cancelled_leaves_its_place_or_its_slot(work: Work) -> None:
    first, waiting, next_ = (work.start(name) for name in ("a1", "a2", "b1"))
    await turns()
    waiting.cancel()
    first.cancel()  # releases the slot before `waiting` has left the queue
    await asyncio.wait([first, waiting])
    await turns()
    assert work.order == ["a1", "b1"]
    last = work.start("a3")
    await turns()
    next_.cancel()
    await turns()
    last.cancel()
    await asyncio.wait([next_, last])
    assert (work.slots.taken, work.slots.waiting) == (0, 0)


async def test_one_that_is_cancelled_at_its_turn_passes_it_on(work: Work) -> None:
    first, second, third = (work.start(name) for name in ("a1", "b1", "c1"))
    await turns()
    first.cancel()
    await asyncio.sleep(0)  # the slot is given to `second`, which has not run since
    second.cancel()
    await asyncio.wait([first, second])
    await turns()
    assert work.order == ["a1", "c1"]
    third.cancel()
    await asyncio.wait([third])
    assert (work.slots.taken, work.slots.waiting) == (0, 0)
