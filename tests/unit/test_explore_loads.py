"""Is every URL loaded once, whoever gives up meanwhile, and every state captured once, whoever fails?"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from index.graph import UrlPolicy
from pipeline.browser.session import Capture
from pipeline.explore.loads import Loads
from pipeline.explore.looks import Looks
from pipeline.explore.secrets import Redactor
from pipeline.explore.state import Load, State
from tests.sites.still import look
from waygraph.errors import BrowserFailure

URL = "http://x/"


class Loader:
    """Loads when it is let."""

    def __init__(self):
        self.loads, self.may, self.pace = 0, asyncio.Event(), self

    @asynccontextmanager
    async def idle(self):
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


async def test_a_load_that_is_given_up_is_taken_over_by_one_who_waits_for_it():
    loads, first, second = Loads(UrlPolicy(), no_journal), Loader(), Loader()
    giving_up, waiting = (asyncio.create_task(loads.get(URL, loader)) for loader in (first, second))
    await asyncio.sleep(0)
    giving_up.cancel()
    second.may.set()
    assert await waiting == Load("state")
    assert (first.loads, second.loads) == (1, 1)


async def test_when_all_are_told_to_stop_nobody_takes_the_load_over():
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


async def test_another_name_of_what_was_loaded_is_known_to_a_resumed_run():
    written = {}

    async def record(url, load):
        written[url] = load

    loads = Loads(UrlPolicy(), record)
    await loads.alias("http://X/?b=1&a=2", Load("state"))
    assert written == {"http://x/?a=2&b=1": Load("state")}
    assert loads.known("http://x/?a=2&b=1") == Load("state")


@pytest.mark.parametrize("failing", [0, 1, 3, 4])
async def test_when_a_capture_fails_the_next_one_who_has_the_page_tries(failing):
    journal = SimpleNamespace(add_look=no_journal, record_capture=no_journal, withhold=no_journal)
    counters, under_way = Counter(), 0
    looks = Looks(journal, SimpleNamespace(put=lambda content: content.decode()), counters, {}, Redactor())
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
    keys = await asyncio.gather(*(looks.see(seen, take) for _ in range(4)))
    looks.choose(State.of(seen, keys[0], 0, None))
    assert looks.captured(seen.id) == (("shot", "dom", "aria") if failing < 4 else None)
    assert counters["capture/failed"] == failing
