"""Browsers that crash, hang or use too much memory are replaced completely. Real browsers, real signals."""

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

from tests.browsers import LOOPBACK_ONLY
from waygraph.core.errors import BrowserFailure
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserLimits, BrowserPool
from waygraph.pipeline.browser.process.process_tree import (
    adopt_orphans,
    children,
    command_line,
    is_alive,
    memory_bytes,
)

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
#: So that hanging is noticed soon.
IMPATIENT = BrowserLimits(probe_interval_s=0.1, response_timeout_s=1.0)
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
        while not condition():  # noqa: ASYNC110 - the end of a process sends no event
            await asyncio.sleep(0.01)


async def title(browser) -> str:
    """Load a page and return its title, to check that the browser works."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto("data:text/html,<title>works</title>")
    shown = await page.title()
    await context.close()
    return shown


def main_process(pool) -> int:
    """Return the main process of the browser: not the driver, a child process or a wrapper script."""
    browsers = [each for each in pool.processes() if "--remote-debugging-pipe" in command_line(each)]
    # Its child processes start later, with its command line until they exec.
    return min(each.pid for each in browsers if command_line(each)[0] != "/bin/sh")


def driver(pool) -> int:
    return next(each.pid for each in pool.processes() if "run-driver" in command_line(each))


async def settled_memory(pool) -> int:
    """Return the memory of the pool after its processes have stopped growing: a new browser still loads its code."""
    before, now = 0, memory_bytes(pool.processes())
    async with asyncio.timeout(PATIENCE_S):
        while now > 1.02 * before:
            await asyncio.sleep(0.5)
            before, now = now, memory_bytes(pool.processes())
    return now


def profiles(pool) -> set[Path]:
    arguments = [command_line(each) for each in pool.processes()]
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
async def test_lost_browser_is_replaced_and_leaves_no_process_or_profile(victim, number, record_property):
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
        await until(lambda: not any(is_alive(each) for each in before))
        await until(lambda: not any(folder.exists() for folder in folders))
        assert counters == {"browser/lost": 1}
        after = pool.processes()
    assert not any(is_alive(each) for each in after)
    assert not children(os.getpid()) & (before | after)  # orphans that came to us were reaped


async def test_unnoticed_browser_crash_is_detected_before_the_next_use():
    async with pool_of() as pool, pool.lease() as lease:
        assert not lease.is_stale
        first = lease.browser
        assert await lease.renew() is first
        os.kill(main_process(pool), signal.SIGKILL)
        await until(lambda: lease.is_stale)
        assert await title(await lease.renew()) == "works"


async def test_browser_above_its_memory_limit_is_replaced_between_items():
    counters = Counter()
    async with (
        pool_of(limits=BrowserLimits(probe_interval_s=0.05)) as pool,
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
        pool._memory_limit = int(0.8 * used)
        await until(lambda: first.is_stale)
        assert await page.evaluate("() => 1 + 1") == 2  # current users can finish
        assert await first.renew() is not old
        assert await page.evaluate("() => 1 + 1") == 2
        assert await second.renew() is not old
        await until(lambda: not any(is_alive(each) for each in before))
        assert counters == {"browser/recycled": 2}


async def test_browser_above_its_age_limit_is_replaced():
    async with pool_of(limits=BrowserLimits(probe_interval_s=0.05, max_age_s=0.5)) as pool, pool.lease() as lease:
        old = lease.browser
        await until(lambda: lease.is_stale)
        assert await title(await lease.renew()) == "works"
        assert lease.browser is not old


async def test_explorations_share_a_limited_number_of_browsers():
    async with pool_of(browsers=2) as pool, pool.lease() as a, pool.lease() as b, pool.lease() as c:
        assert a.browser is not b.browser
        assert c.browser in {a.browser, b.browser}
        os.kill(driver(pool), signal.SIGKILL)
        await until(lambda: any(lease.is_stale for lease in (a, b, c)))
        assert {await title(await lease.renew()) for lease in (a, b, c)} == {"works"}


async def test_closing_a_page_in_an_endless_loop_ends_its_process():
    async with pool_of(limits=BrowserLimits()) as pool, pool.lease() as lease:
        context = await lease.browser.new_context()
        page = await context.new_page()
        renderers = [each for each in pool.processes() if "--type=renderer" in command_line(each)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(page.evaluate("() => { for (;;); }"), 0.3)
        await asyncio.wait_for(context.close(), 5)
        await until(lambda: not all(is_alive(each) for each in renderers))
        assert not lease.is_stale
        assert await title(lease.browser) == "works"


async def test_waiting_calls_fail_at_once_when_the_page_process_crashes():
    async with pool_of(limits=BrowserLimits()) as pool, pool.lease() as lease:
        renderers = {each for each in pool.processes() if "--type=renderer" in command_line(each)}
        page = await lease.browser.new_page()
        await page.goto("data:text/html,<title>doomed</title>")
        view = PageView(page, SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings()), LOOPBACK_ONLY)
        await view.observe()
        unanswered = asyncio.ensure_future(view.with_timeout(page.evaluate("() => new Promise(() => {})"), 60))
        for each in pool.processes() - renderers:
            if "--type=renderer" in command_line(each):
                os.kill(each.pid, signal.SIGKILL)
        with pytest.raises((BrowserFailure, PlaywrightError)):
            await asyncio.wait_for(unanswered, PATIENCE_S)
        with pytest.raises(BrowserFailure, match="crashed"):
            await asyncio.wait_for(view.observe(), PATIENCE_S)
        assert not lease.is_stale


async def test_documents_left_behind_do_not_accumulate_in_renderer_memory(monkeypatch):
    async def documents_after(loads: int) -> int:
        page = await lease.browser.new_page()
        view = PageView(page, SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings()), LOOPBACK_ONLY)
        for number in range(loads):
            await view.goto(f"data:text/html,<title>{number}</title><p>Page {number}")
        devtools = await page.context.new_cdp_session(page)
        await devtools.send("Performance.enable")
        metrics = (await devtools.send("Performance.getMetrics"))["metrics"]
        await page.close()
        return next(int(metric["value"]) for metric in metrics if metric["name"] == "Documents")

    async with pool_of(limits=BrowserLimits()) as pool, pool.lease() as lease:
        assert await documents_after(20) > 15  # Chromium keeps them until memory is short
        monkeypatch.setattr("waygraph.pipeline.browser.page.view.DOCUMENTS_PER_COLLECTION", 10)
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


def test_killing_the_pool_owner_ends_all_browser_processes():
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
