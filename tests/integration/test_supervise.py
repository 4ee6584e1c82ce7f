"""Browsers that crash, hang or grow are replaced, and nothing of them is left behind. Real browsers, real signals."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest
from playwright.async_api import Error as PlaywrightError

from pipeline.browser.launch import launch
from pipeline.browser.processes import adopt_orphans, children, memory_bytes
from pipeline.browser.snapshot import Lens
from pipeline.browser.supervise import BrowserPool, Limits
from pipeline.browser.view import PageView
from tests.conftest import LOOPBACK_ONLY
from waygraph.errors import BrowserFailure
from waygraph.settings import ExploreSettings

ROOT = Path(__file__).parents[2]
#: So that hanging is noticed soon.
IMPATIENT = Limits(probe_s=0.1, patience_s=1.0)
#: Nobody waits for it to pass.
PATIENCE_S = 20.0


def launcher():
    return launch(LOOPBACK_ONLY)


@asynccontextmanager
async def pool_of(**options):
    options.setdefault("limits", IMPATIENT)
    async with BrowserPool(launcher, **options) as pool:
        yield pool


async def until(condition) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nobody tells of the end of a process
            await asyncio.sleep(0.01)


async def title(browser) -> str:
    """Proof that a browser works."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto("data:text/html,<title>works</title>")
    shown = await page.title()
    await context.close()
    return shown


def main_process(pool) -> int:
    """The browser itself: no driver, no helper, no shell script around it."""
    browsers = [each for each in pool.processes() if "--remote-debugging-pipe" in each.command]
    # Its helpers come later, and look like it until they have become what they are.
    return min(each.pid for each in browsers if not each.command.startswith("/bin/sh"))


def driver(pool) -> int:
    return next(each.pid for each in pool.processes() if "run-driver" in each.command)


async def settled_memory(pool) -> int:
    """Bytes that the pool takes once its processes have stopped growing: a young browser is still loading itself."""
    before, now = 0, memory_bytes(pool.processes())
    async with asyncio.timeout(PATIENCE_S):
        while now > 1.02 * before:
            await asyncio.sleep(0.5)
            before, now = now, memory_bytes(pool.processes())
    return now


def profiles(pool) -> set[Path]:
    arguments = [each.command.split("\0") for each in pool.processes()]
    found = {arg.partition("=")[2] for args in arguments for arg in args if arg.startswith("--user-data-dir=")}
    return {Path(folder) for folder in found}


@pytest.mark.parametrize(
    ("victim", "number"),
    [
        (main_process, signal.SIGKILL),
        (driver, signal.SIGKILL),
        (main_process, signal.SIGSTOP),
        (driver, signal.SIGSTOP),
    ],
    ids=["browser crashes", "driver crashes", "browser hangs", "driver hangs"],
)
async def test_a_lost_browser_is_replaced_and_nothing_of_it_is_left(victim, number, record_property):
    adopt_orphans()
    counters = Counter()
    async with pool_of() as pool, pool.lease(counters) as lease:
        page = await lease.browser.new_page()
        before, folders = pool.processes(), profiles(pool)
        assert folders
        assert all(folder.is_dir() for folder in folders)
        os.kill(victim(pool), number)
        lost = time.monotonic()
        with suppress(PlaywrightError, TimeoutError):
            await asyncio.wait_for(page.title(), 0.5)
        # Several tasks find out at once; all get the same browser.
        renewed = await asyncio.gather(*(lease.renew(suspect=True) for _ in range(3)))
        record_property("replaced_after_s", round(time.monotonic() - lost, 2))
        assert renewed == [lease.browser] * 3
        assert await title(lease.browser) == "works"
        await until(lambda: not any(each.is_running for each in before))
        await until(lambda: not any(folder.exists() for folder in folders))
        assert counters == {"browser/lost": 1}
        after = pool.processes()
    assert not any(each.is_running for each in after)
    assert not children(os.getpid()) & (before | after)  # orphans that came to us were reaped


async def test_a_browser_that_crashes_unnoticed_is_stale_before_anybody_asks():
    async with pool_of() as pool, pool.lease() as lease:
        assert not lease.is_stale
        first = lease.browser
        assert await lease.renew() is first
        os.kill(main_process(pool), signal.SIGKILL)
        await until(lambda: lease.is_stale)
        assert await title(await lease.renew()) == "works"


async def test_a_browser_that_grew_is_replaced_when_nobody_is_in_the_middle_of_something():
    counters = Counter()
    async with (
        pool_of(limits=Limits(probe_s=0.05)) as pool,
        pool.lease(counters) as first,
        pool.lease(counters) as second,
    ):
        old = first.browser
        assert second.browser is old
        page = await old.new_page()
        assert await page.evaluate("() => 1 + 1") == 2
        assert not first.is_stale
        used, before = await settled_memory(pool), pool.processes()
        assert 50 * 2**20 < used < 2 * 2**30
        pool._memory = int(0.8 * used)
        await until(lambda: first.is_stale)
        assert await page.evaluate("() => 1 + 1") == 2  # whoever is at it can finish
        assert await first.renew() is not old
        assert await page.evaluate("() => 1 + 1") == 2
        assert await second.renew() is not old
        await until(lambda: not any(each.is_running for each in before))
        assert counters == {"browser/recycled": 2}


async def test_a_browser_of_age_is_replaced():
    async with pool_of(limits=Limits(probe_s=0.05, age_s=0.5)) as pool, pool.lease() as lease:
        old = lease.browser
        await until(lambda: lease.is_stale)
        assert await title(await lease.renew()) == "works"
        assert lease.browser is not old


async def test_explorations_share_the_browsers_that_there_may_be():
    async with pool_of(browsers=2) as pool, pool.lease() as a, pool.lease() as b, pool.lease() as c:
        assert a.browser is not b.browser
        assert c.browser in {a.browser, b.browser}
        os.kill(driver(pool), signal.SIGKILL)
        await until(lambda: any(lease.is_stale for lease in (a, b, c)))
        assert {await title(await lease.renew()) for lease in (a, b, c)} == {"works"}


async def test_a_page_in_an_endless_loop_goes_away_with_its_process_when_it_is_closed():
    async with pool_of(limits=Limits()) as pool, pool.lease() as lease:
        context = await lease.browser.new_context()
        page = await context.new_page()
        renderers = [each for each in pool.processes() if "--type=renderer" in each.command]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(page.evaluate("() => { for (;;); }"), 0.3)
        await asyncio.wait_for(context.close(), 5)
        await until(lambda: not all(each.is_running for each in renderers))
        assert not lease.is_stale
        assert await title(lease.browser) == "works"


async def test_nobody_waits_for_a_page_whose_process_crashed():
    async with pool_of(limits=Limits()) as pool, pool.lease() as lease:
        renderers = {each for each in pool.processes() if "--type=renderer" in each.command}
        page = await lease.browser.new_page()
        await page.goto("data:text/html,<title>doomed</title>")
        view = PageView(page, Lens.of(LOOPBACK_ONLY, ExploreSettings()), LOOPBACK_ONLY)
        await view.observe()
        unanswered = asyncio.ensure_future(view.within(page.evaluate("() => new Promise(() => {})"), 60))
        for each in pool.processes() - renderers:
            if "--type=renderer" in each.command:
                os.kill(each.pid, signal.SIGKILL)
        with pytest.raises((BrowserFailure, PlaywrightError)):
            await asyncio.wait_for(unanswered, PATIENCE_S)
        with pytest.raises(BrowserFailure, match="crashed"):
            await asyncio.wait_for(view.observe(), PATIENCE_S)
        assert not lease.is_stale


async def test_documents_that_were_left_do_not_pile_up_in_the_memory_of_their_process(monkeypatch):
    async def documents_after(loads: int) -> int:
        page = await lease.browser.new_page()
        view = PageView(page, Lens.of(LOOPBACK_ONLY, ExploreSettings()), LOOPBACK_ONLY)
        for number in range(loads):
            await view.goto(f"data:text/html,<title>{number}</title><p>Page {number}")
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Performance.enable")
        metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
        await page.close()
        return next(int(metric["value"]) for metric in metrics if metric["name"] == "Documents")

    async with pool_of(limits=Limits()) as pool, pool.lease() as lease:
        assert await documents_after(20) > 15  # Chromium keeps them until memory is short
        monkeypatch.setattr("pipeline.browser.view.DOCUMENTS_PER_COLLECTION", 10)
        assert await documents_after(20) < 5


OWNER = """
import asyncio, json, os, sys
from tests.integration.test_supervise import BrowserPool, launcher

async def main():
    async with BrowserPool(launcher) as pool, pool.lease() as lease:
        await lease.browser.new_page()
        print(json.dumps([each.pid for each in pool.processes()]), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_nothing_survives_the_process_that_owns_the_pool():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    pids = json.loads(owner.stdout.readline())
    started = [psutil.Process(pid) for pid in pids]
    assert len(started) > 3
    owner.kill()
    owner.communicate()
    _, alive = psutil.wait_procs([p for p in started if not is_zombie(p)], timeout=PATIENCE_S)
    assert [p for p in alive if not is_zombie(p)] == []


def is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
