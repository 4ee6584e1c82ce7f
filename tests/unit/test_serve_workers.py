"""What blocks runs in a thread, what was short the last time on the event loop, and nobody waits without end."""

from __future__ import annotations

import asyncio
import math
import threading
from contextvars import ContextVar

import pytest

from index.store import Store
from pipeline.encode.registry import create_encoder
from serve import workers
from serve.maps import Maps
from serve.metrics import Metrics
from serve.waiting import WouldWait, about_to_wait, without_waiting
from serve.workers import AT_ONCE, Workers
from tests.small_map import SmallMap
from waygraph.errors import NotFound, Overloaded
from waygraph.settings import Settings

NAME: ContextVar[str] = ContextVar("name")


@pytest.fixture
def pool():
    made = Workers(2, Metrics())
    yield made
    made.close()


async def is_here(pool, kind):
    """Whether a call of this kind is made in the thread of the event loop."""
    return await pool.run_maybe_here(kind, threading.get_ident) == threading.get_ident()


async def test_a_call_whose_kind_was_short_is_made_on_the_event_loop(pool, monkeypatch):
    monkeypatch.setattr(workers, "SHORT_SECONDS", math.inf)
    assert [await is_here(pool, "path") for _ in range(3)] == [False, True, True]
    assert not await is_here(pool, "another")
    assert [await is_here(pool, None) for _ in range(2)] == [False, False]


async def test_a_call_whose_kind_was_long_is_made_in_a_thread_until_one_was_short(pool, monkeypatch):
    monkeypatch.setattr(workers, "SHORT_SECONDS", 0.0)
    assert [await is_here(pool, "path") for _ in range(2)] == [False, False]
    monkeypatch.setattr(workers, "SHORT_SECONDS", math.inf)
    assert await is_here(pool, "path")


async def test_what_turns_out_to_wait_is_not_done_on_the_event_loop_but_in_a_thread(pool, monkeypatch):
    """The map was open when the kind of the call was looked up, and is not any more."""
    monkeypatch.setattr(workers, "SHORT_SECONDS", math.inf)
    closed, here = False, threading.get_ident()

    def answer():
        if closed:
            about_to_wait()
        return threading.get_ident()

    assert [await pool.run_maybe_here("path", answer) == here for _ in range(2)] == [False, True]
    closed = True
    assert await pool.run_maybe_here("path", answer) != here
    about_to_wait()  # outside, who calls may wait


def test_a_map_that_is_not_open_is_not_opened_where_nobody_may_wait(tmp_path):
    shop, settings = SmallMap(), Settings(store=str(tmp_path / "maps"))
    store = Store.open(settings.store, create=True)
    store.publish(shop.draft(create_encoder(settings.encode), store.blobs))
    url = shop.nodes["cards"].url
    with Maps(settings) as maps:
        maps.open()
        with pytest.raises(WouldWait), without_waiting():
            maps.locate(shop.site, url)
        found = maps.locate(shop.site, url)
        with without_waiting():
            assert maps.locate(shop.site, url) == found


async def test_errors_and_the_context_pass_between_the_threads(pool, monkeypatch):
    NAME.set("a request")
    monkeypatch.setattr(workers, "SHORT_SECONDS", math.inf)

    def fail():
        raise NotFound(NAME.get())

    for _ in range(2):  # in a thread, then here
        with pytest.raises(NotFound, match="a request"):
            await pool.run_maybe_here("failing", fail)


async def test_who_comes_when_too_many_wait_is_refused_and_who_gave_up_waiting_is_never_run(pool):
    let, ran = threading.Event(), []

    def hold(number):
        let.wait(30)
        ran.append(number)

    held = [asyncio.create_task(pool.run(hold, number)) for number in range(AT_ONCE + 2)]
    await asyncio.sleep(0)
    assert pool.waiting == 2
    with pytest.raises(Overloaded):
        await pool.run(hold, -1)
    held[-1].cancel()
    await asyncio.wait({held[-1]})
    assert pool.waiting == 1
    let.set()
    await asyncio.wait(held)
    assert (sorted(ran), pool.waiting) == (list(range(AT_ONCE + 1)), 0)
