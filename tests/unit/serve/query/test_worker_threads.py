"""Blocking calls run in threads, short ones on the event loop, and the queue is limited."""

from __future__ import annotations

import asyncio
import math
import threading
from contextvars import ContextVar

import pytest

from tests.small_map import SmallMap
from waygraph.core.errors import NotFound, Overloaded
from waygraph.core.schemas import LocateRequest
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.query import worker_threads as workers
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.nonblocking import WouldBlock, nonblocking, raise_if_nonblocking
from waygraph.serve.query.worker_threads import THREADS, WorkerThreads
from waygraph.serve.telemetry.metrics import Metrics

NAME: ContextVar[str] = ContextVar("name")


@pytest.fixture
def pool():
    made = WorkerThreads(2, Metrics())
    yield made
    made.close()


async def is_here(pool, kind):
    """Return whether a call of this kind runs in the thread of the event loop."""
    return await pool.run_inline_if_short(kind, threading.get_ident) == threading.get_ident()


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


async def test_a_call_that_would_block_is_repeated_in_a_thread(pool, monkeypatch):
    """The map was open when the kind of the call was looked up, and has been closed since."""
    monkeypatch.setattr(workers, "SHORT_SECONDS", math.inf)
    closed, here = False, threading.get_ident()

    def answer():
        if closed:
            raise_if_nonblocking()
        return threading.get_ident()

    assert [await pool.run_inline_if_short("path", answer) == here for _ in range(2)] == [False, True]
    closed = True
    assert await pool.run_inline_if_short("path", answer) != here
    raise_if_nonblocking()  # outside, who calls may wait


def test_a_closed_map_is_not_opened_in_a_nonblocking_section(tmp_path):
    shop, settings = SmallMap(), Settings(store=str(tmp_path / "maps"))
    store = Store.open(settings.store, create=True)
    store.publish(shop.draft(create_encoder(settings.encode), store.blobs))
    request = LocateRequest(url=shop.nodes["cards"].url)
    with Maps(settings) as maps:
        maps.open()
        with pytest.raises(WouldBlock), nonblocking():
            maps.locate(shop.site, request)
        found = maps.locate(shop.site, request)
        with nonblocking():
            assert maps.locate(shop.site, request) == found


async def test_errors_and_the_context_pass_between_the_threads(pool, monkeypatch):
    NAME.set("a request")
    monkeypatch.setattr(workers, "SHORT_SECONDS", math.inf)

    def fail():
        raise NotFound(NAME.get())

    for _ in range(2):  # in a thread, then here
        with pytest.raises(NotFound, match="a request"):
            await pool.run_inline_if_short("failing", fail)


async def test_calls_beyond_the_limit_are_refused_and_cancelled_calls_never_run(pool):
    let, ran = threading.Event(), []

    def hold(number):
        let.wait(30)
        ran.append(number)

    held = [asyncio.create_task(pool.run(hold, number)) for number in range(THREADS + 2)]
    await asyncio.sleep(0)
    assert pool.waiting == 2
    with pytest.raises(Overloaded):
        await pool.run(hold, -1)
    held[-1].cancel()
    await asyncio.wait({held[-1]})
    assert pool.waiting == 1
    let.set()
    await asyncio.wait(held)
    assert (sorted(ran), pool.waiting) == (list(range(THREADS + 1)), 0)
