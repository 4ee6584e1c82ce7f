"""What would a bare script take for the same browser work? Records what an exploration asks of pages, plays it back.

Recorded are loads, gestures, history steps and captures, with the page of a worker that they were asked of. Played back
they are plain Playwright calls on pages that are guarded alike; nothing is looked at, decided, or written down.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from index.graph import Action
from pipeline.browser import view as view_module
from pipeline.browser.gestures import make_gesture
from pipeline.browser.guard import NetworkGuard
from pipeline.browser.session import GuardedPage
from pipeline.browser.view import PageView

Step = tuple[str, int, tuple[Any, ...]]


@dataclass
class Trace:
    """Steps by worker: (what, number of the page, arguments), in the order in which they were asked for."""

    steps: dict[str, list[Step]] = field(default_factory=dict)
    _pages: dict[Page, int] = field(default_factory=dict)

    def add(self, what: str, page: Page, *arguments: Any) -> None:
        """Take down a step of the worker that is running."""
        number = self._pages.setdefault(page, len(self._pages))
        task = asyncio.current_task()
        self.steps.setdefault(task.get_name() if task else "", []).append((what, number, arguments))


@asynccontextmanager
async def recorded(trace: Trace) -> AsyncIterator[None]:
    """Record everything that is asked of guarded pages inside the block."""
    goto, capture, back = PageView.goto, GuardedPage.capture, PageView.back

    async def recording_goto(self: PageView, url: str, **more: Any) -> Any:
        trace.add("goto", self.page, url)
        return await goto(self, url, **more)

    async def recording_gesture(page: Page, action: Action, x: float, y: float) -> None:
        trace.add("gesture", page, action, x, y)
        await make_gesture(page, action, x, y)

    async def recording_capture(self: GuardedPage, acted: Any) -> Any:
        trace.add("capture", self.page)
        return await capture(self, acted)

    async def recording_back(self: PageView) -> None:
        trace.add("back", self.page)
        await back(self)

    with (
        mock.patch.object(PageView, "goto", recording_goto),
        mock.patch.object(PageView, "back", recording_back),
        mock.patch.object(GuardedPage, "capture", recording_capture),
        mock.patch.object(view_module, "make_gesture", recording_gesture),
    ):
        yield


async def play(trace: Trace, browser: Browser, open_guard: Callable[[], NetworkGuard]) -> None:
    """Play a trace back, its workers at once."""
    await asyncio.gather(*(_play(steps, browser, open_guard) for steps in trace.steps.values()))


@dataclass
class _Played:
    context: BrowserContext
    page: Page
    session: CDPSession
    guard: NetworkGuard


async def _open(browser: Browser, open_guard: Callable[[], NetworkGuard]) -> _Played:
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    guard = open_guard()
    await guard.prepare(context)
    page = await context.new_page()
    return _Played(context, page, await guard.attach(page), guard)


async def _play(steps: list[Step], browser: Browser, open_guard: Callable[[], NetworkGuard]) -> None:
    pages: dict[int, _Played] = {}
    for what, number, arguments in steps:
        if number not in pages:
            pages[number] = await _open(browser, open_guard)
        played = pages[number]
        page = played.page
        if what == "goto":
            played.guard.hold = False
            await page.goto(arguments[0], wait_until="load")
        elif what == "gesture":
            played.guard.hold = True
            await make_gesture(page, *arguments)
            await page.evaluate("() => new Promise(requestAnimationFrame)")
        elif what == "back":
            await page.evaluate("() => history.back()")
        else:
            await _capture(page, played.session)
    for played in pages.values():
        await played.context.close()


async def _capture(page: Page, session: CDPSession) -> None:
    try:
        shot = await session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 60})
        base64.b64decode(shot["data"])
    except PlaywrightError:  # no frame yet
        await page.screenshot(type="jpeg", quality=60)
    await page.content()
    await page.locator("body").aria_snapshot()
