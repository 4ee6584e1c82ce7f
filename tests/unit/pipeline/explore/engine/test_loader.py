"""Each URL is loaded once and each state captured once, also when a worker gives up or fails."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from tests.sites.static_pages import look
from waygraph.core.errors import BrowserFailure
from waygraph.core.urls import UrlPolicy
from waygraph.pipeline.browser.session import Capture
from waygraph.pipeline.explore.checkpoint.snapshot_store import SnapshotStore
from waygraph.pipeline.explore.engine.loader import Loads
from waygraph.pipeline.explore.records.state import Load, State
from waygraph.pipeline.explore.session.secrets import Redactor

URL = "http://x/"


class Loader:
    """Loads when the test allows it."""

    def __init__(self):
        self.loads, self.may, self.pace = 0, asyncio.Event(), self

    @asynccontextmanager
    async def release_slot(self):
        try:
            yield
        finally:
            await asyncio.sleep(0.01)  # for a slot

    async def load(self, *_):
        self.loads += 1
        await self.may.wait()
        return Load("state")


async def no_journal(*_):
    pass


async def test_cancelled_load_is_taken_over_by_a_waiting_worker():
    loads, first, second = Loads(UrlPolicy(), no_journal), Loader(), Loader()
    giving_up, waiting = (asyncio.create_task(loads.get(URL, loader)) for loader in (first, second))
    await asyncio.sleep(0)
    giving_up.cancel()
    second.may.set()
    assert await waiting == Load("state")
    assert (first.loads, second.loads) == (1, 1)


async def test_load_is_not_taken_over_when_all_workers_are_cancelled():
    loads, first, second = Loads(UrlPolicy(), no_journal), Loader(), Loader()
    tasks = [asyncio.create_task(loads.get(URL, loader)) for loader in (first, second)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    done, pending = await asyncio.wait(tasks, timeout=1)
    for task in pending:
        task.cancel()
    assert not pending
    assert all(task.cancelled() for task in done)
    assert second.loads == 0


@pytest.mark.parametrize("first", [0, 1])
async def test_of_two_forms_of_a_url_the_first_link_is_requested_whichever_worker_is_first(first):
    forms, requested, written = ["http://x/?b=1&a=2#part", "http://x/?a=2&b=1"], [], {}

    async def ask(key, url, *_):
        requested.append((key, url))
        return Load("state")

    async def record(url, load):
        written[url] = load

    loads = Loads(UrlPolicy(), record, ask)
    loads.expect(["", *forms])
    for form in (forms[first], forms[1 - first]):
        await loads.get(form, Loader())
    assert requested == [("http://x/?a=2&b=1", "http://x/?b=1&a=2")]
    assert written == {"http://x/?a=2&b=1": Load("state", address="http://x/?b=1&a=2")}


async def test_url_alias_of_a_load_is_recorded_for_a_resumed_run():
    written = {}

    async def record(url, load):
        written[url] = load

    loads = Loads(UrlPolicy(), record)
    await loads.alias("http://X/?b=1&a=2", Load("state"))
    assert written == {"http://x/?a=2&b=1": Load("state")}
    assert loads.known("http://x/?a=2&b=1") == Load("state")


@pytest.mark.parametrize("failing", [0, 1, 3, 4])
async def test_failed_capture_is_retried_by_the_next_worker_with_the_page(failing):
    journal = SimpleNamespace(add_snapshot=no_journal, record_capture=no_journal, withhold=no_journal)
    counters, under_way = Counter(), 0
    looks = SnapshotStore(journal, SimpleNamespace(put=lambda content: content.decode()), counters, {}, Redactor())
    failures = iter(range(failing))

    async def take():
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        await asyncio.sleep(0.01)
        under_way -= 1
        if next(failures, None) is not None:
            raise BrowserFailure("gone")
        return Capture(b"shot", "dom", "aria")

    seen = look("<p>Hello", URL)
    keys = await asyncio.gather(*(looks.save(seen, take) for _ in range(4)))
    looks.choose(State.of(seen, keys[0], 0, None))
    assert looks.captured(seen.id) == (("shot", "dom", "aria") if failing < 4 else None)
    assert counters["capture/failed"] == failing
