"""Recorder and player of the browser work of one level of exploring: the bare script of `bench.explore`.

Recorded are loads, gestures, keys, history steps and captures of one level, with the worker and the page that they were
for. Played back they are plain Playwright and DevTools calls, by a browser that was started alike, on pages that are
opened, guarded and proxied alike, as many at once as there were workers, without a limit of busy pages. The script
leaves out everything else that an explorer does: it knows each element's place and every target beforehand, reads no
page, compares no states, decides nothing and records nothing.

It is played in two ways of waiting:

- `quiet`: after a load until the document is complete, and after a load or a gesture until nothing has changed for as
  long as the explorer asks for (`quiet_ms`). A script that does not know the site cannot wait less: this is the bound
  that exploring is held against.
- `raw`: after a load until the document is complete, after a gesture not at all (the browser answers when the handlers
  of the event have run). Right on the benchmark's pages alone, which change at once or not at all: the rate of
  the browser without any waiting.

Both are checked: they must capture as many different documents as exploring did, and hold back as many navigations.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest import mock

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from bench.cpu import cpu_by_kind, used_since
from waygraph.core.settings import Settings
from waygraph.index.graph import Action
from waygraph.pipeline.browser.guard import NetworkGuard, RequestPolicy
from waygraph.pipeline.browser.page import actor as actor_module
from waygraph.pipeline.browser.page.actor import PageActor
from waygraph.pipeline.browser.page.gestures import PARKED, gesture_steps
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage
from waygraph.pipeline.explore.crawl import Crawl
from waygraph.pipeline.explore.engine.worker import Worker
from waygraph.pipeline.explore.session.network_boundary import NetworkBoundary

Step = tuple[str, int, tuple[Any, ...]]
Waiting = Literal["quiet", "raw"]

#: Says when the document is complete, and has not changed for so many milliseconds; in every document from its start.
_WATCH = """(() => {
  let changed = performance.now();
  new MutationObserver(() => { changed = performance.now(); })
    .observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  const complete = new Promise((resolve) => {
    if (document.readyState === "complete") resolve();
    else addEventListener("load", resolve, { once: true });
  });
  window.__quiet = async (ms) => {
    await complete;
    if (!ms) return;
    changed = performance.now();
    for (let left = ms; left > 0; left = ms - (performance.now() - changed)) {
      await new Promise((resolve) => setTimeout(resolve, left));
    }
  };
})()"""


@dataclass
class Trace:
    """One level of exploring.

    Attributes
    ----------
    steps : by worker, (what, number of the page, arguments), in the order in which they were asked for.
    seconds, cpu : what the level took; CPU seconds by kind of process (`bench.cpu`).
    held : navigations that were held back.
    """

    steps: dict[str, list[Step]] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    held: int = 0
    on: bool = False
    _pages: dict[Page, int] = field(default_factory=dict)
    _owners: dict[Page, str] = field(default_factory=dict)

    def add(self, what: str, page: Page, *arguments: Any) -> None:
        """Take down a step, if this is the level to be recorded."""
        if not self.on:
            return
        number = self._pages.setdefault(page, len(self._pages))
        task = asyncio.current_task()
        # What is done with a page runs in tasks of its own, which the worker that has loaded the page waits for.
        if what == "goto":
            self._owners[page] = task.get_name() if task else ""
        self.steps.setdefault(self._owners[page], []).append((what, number, arguments))

    @property
    def captures(self) -> int:
        """How many captures were taken."""
        return sum(what == "capture" for steps in self.steps.values() for what, _, _ in steps)


@asynccontextmanager
async def recorded(trace: Trace) -> AsyncIterator[None]:
    """Record what the first level that is explored inside the block asks of guarded pages."""
    run_round, act = Crawl._run_round, Worker._act  # noqa: SLF001 - what is measured
    goto, capture, back, press, release = (
        PageView.goto, GuardedPage.capture, PageActor.go_back, PageActor.press_key, PageActor.park_pointer,
    )  # fmt: skip

    async def recording_round(self: Crawl, number: int, workers: Sequence[Worker]) -> bool:
        first = number == 0
        loop = asyncio.get_running_loop()
        before, began, trace.on = cpu_by_kind(), loop.time(), first
        try:
            return await run_round(self, number, workers)
        finally:
            trace.on = False
            if first:
                trace.seconds = loop.time() - began
                trace.cpu = used_since(before)

    async def counting_act(self: Worker, *arguments: Any, **more: Any) -> Any:
        happened = await act(self, *arguments, **more)
        trace.held += trace.on and bool(happened.stopped.held)
        return happened

    async def recording_goto(self: PageView, url: str, **more: Any) -> Any:
        trace.add("goto", self.page, url)
        return await goto(self, url, **more)

    def recording_gesture(page: Page, action: Action, x: float, y: float) -> Iterator[Coroutine[Any, Any, None]]:
        trace.add("gesture", page, action, x, y)
        return gesture_steps(page, action, x, y)

    async def recording_capture(self: GuardedPage, *arguments: Any) -> Any:
        trace.add("capture", self.page)
        return await capture(self, *arguments)

    async def recording_back(self: PageActor) -> None:
        trace.add("back", self._page)
        await back(self)

    async def recording_press(self: PageActor, key: str) -> None:
        trace.add("press", self._page, key)
        await press(self, key)

    async def recording_release(self: PageActor) -> None:
        trace.add("release", self._page)
        await release(self)

    with (
        mock.patch.object(Crawl, "_run_round", recording_round),
        mock.patch.object(Worker, "_act", counting_act),
        mock.patch.object(PageView, "goto", recording_goto),
        mock.patch.object(PageActor, "go_back", recording_back),
        mock.patch.object(PageActor, "press_key", recording_press),
        mock.patch.object(PageActor, "park_pointer", recording_release),
        mock.patch.object(GuardedPage, "capture", recording_capture),
        mock.patch.object(actor_module, "gesture_steps", recording_gesture),
    ):
        yield


@dataclass
class Played:
    """What a bare script did.

    Attributes
    ----------
    seconds, cpu : as in `Trace`.
    documents : hashes of the documents that were captured.
    held : navigations that were held back.
    """

    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)
    held: int = 0

    @property
    def captures(self) -> int:
        """How many different documents were captured."""
        return len(self.documents)


async def play(trace: Trace, browser: Browser, around: NetworkBoundary, settings: Settings, waiting: Waiting) -> Played:
    """Play a trace back, its workers at once; pages are opened when they are first used, as exploring does."""
    played = Played()
    before, began = cpu_by_kind(), asyncio.get_running_loop().time()
    scripts = [_Script(browser, around, settings, waiting, played) for _ in trace.steps]
    await asyncio.gather(*(script.play(steps) for script, steps in zip(scripts, trace.steps.values(), strict=True)))
    played.seconds = asyncio.get_running_loop().time() - began
    played.cpu = used_since(before)
    for script in scripts:
        await script.close()
    return played


@dataclass
class _Bare:
    context: BrowserContext
    page: Page
    session: CDPSession
    guard: NetworkGuard


class _Script:
    """The bare script of one worker."""

    def __init__(
        self, browser: Browser, around: NetworkBoundary, settings: Settings, waiting: Waiting, played: Played
    ) -> None:
        self._browser = browser
        self._around = around
        self._settings = settings
        self._quiet_ms = settings.browser.quiet_ms if waiting == "quiet" else 0
        self._waits_for_gestures = waiting == "quiet"
        self._played = played
        self._pages: dict[int, _Bare] = {}

    async def play(self, steps: Sequence[Step]) -> None:
        for what, number, arguments in steps:
            if number not in self._pages:
                self._pages[number] = await self._open()
            bare = self._pages[number]
            if what == "goto":
                bare.guard.hold_navigations = False
                await bare.page.goto(arguments[0], wait_until="commit")
                await self._wait(bare)
            elif what == "capture":
                await self._capture(bare)
            else:
                bare.guard.hold_navigations = True
                await _do(what, bare.page, arguments)
                if self._waits_for_gestures:
                    await self._wait(bare)
                self._played.held += len(bare.guard.take_stopped().held)

    async def close(self) -> None:
        for bare in self._pages.values():
            self._played.held += len(bare.guard.take_stopped().held)
            await bare.context.close()

    async def _open(self) -> _Bare:
        context = await self._browser.new_context(
            **ContextOptions(self._settings.capture, user_agent="bench", proxy=self._around.proxy.url).to_playwright()
        )
        await context.add_init_script(_WATCH)
        guard = NetworkGuard(
            lambda _: None,
            request_policy=RequestPolicy(self._settings.explore.guard, self._around.request_policy.rules),
        )
        await guard.prepare(context)
        page = await context.new_page()
        return _Bare(context, page, await guard.attach(page), guard)

    async def _wait(self, bare: _Bare) -> None:
        await bare.session.send("Runtime.evaluate", {"expression": f"__quiet({self._quiet_ms})", "awaitPromise": True})

    async def _capture(self, bare: _Bare) -> None:
        try:
            shot = await bare.session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 60})
            base64.b64decode(shot["data"])
        except PlaywrightError:  # no frame yet
            await bare.page.screenshot(type="jpeg", quality=60)
        self._played.documents.add(hashlib.sha256((await bare.page.content()).encode()).hexdigest())
        await bare.page.locator("body").aria_snapshot()


async def _do(what: str, page: Page, arguments: Sequence[Any]) -> None:
    if what == "gesture":
        for step in gesture_steps(page, *arguments):
            await step
    elif what == "press":
        await page.keyboard.press(*arguments)
    elif what == "release":
        await page.mouse.move(*PARKED)
    else:
        await page.evaluate("() => history.back()")
