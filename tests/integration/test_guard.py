"""Nothing that a page sends may change anything: in strict and guard mode no server sees a mutation."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from pipeline.browser.guard import GuardRules
from pipeline.browser.launch import launch
from pipeline.browser.session import GuardedPage
from pipeline.browser.snapshot import Lens
from tests.conftest import LOOPBACK_ONLY
from tests.sites.hostile import SENDERS, HostileSite
from tests.sites.server import FixtureServer, Page
from waygraph.settings import BrowserSettings, CaptureProfile, ExploreSettings

#: Vectors that leave no request that could be recorded: the API is not there, or the page is gone by then.
SILENT = {"service-worker", "prerender", "shared-worker", "shared-worker-socket", "popup-form", "popup-page",
          "popup-native", "unload-beacon"}  # fmt: skip


@asynccontextmanager
async def guarded_page(browser, mode="guard", rules=None):
    page = await GuardedPage.open(
        browser,
        lens=Lens.of(LOOPBACK_ONLY, ExploreSettings()),
        settings=LOOPBACK_ONLY,
        profile=CaptureProfile(),
        user_agent="waygraph-test",
        storage_state=None,
        policy=lambda _: None,
        guard_mode=mode,
        guard_rules=rules,
    )
    try:
        yield page
    finally:
        await page.close()


async def send_everything(hostile, browser, mode):
    """Use every sender on a page of its own; what the guard said about each."""
    said = {}
    for name in SENDERS:
        async with guarded_page(browser, mode) as guarded:
            seen = (await guarded.view.goto(f"{hostile.url}one/{name}")).snapshot
            (button,) = (c.action for c in seen.candidates if c.action.name == name)
            acted = await guarded.view.act(button)
            # Closing the page is what sends some of them; a second document gives the others the time they need.
            await guarded.view.goto(f"{hostile.url}left")
            said[name] = guarded.take_stopped(), acted
    return said


@pytest.mark.parametrize(("mode", "arguments"), [("guard", ()), ("strict", ("--site-per-process",))])
def test_no_way_of_sending_something_changes_anything(mode, arguments):
    async def run(hostile):
        settings = BrowserSettings(extra_args=(*LOOPBACK_ONLY.extra_args, "--host-resolver-rules=", *arguments))
        async with launch(settings, guarded=True) as browser:
            return await send_everything(hostile, browser, mode)

    with HostileSite() as hostile:
        said = asyncio.run(run(hostile))
        assert hostile.changes == []
    untold = {name for name, (stopped, acted) in said.items() if not stopped.blocked and not acted.stopped}
    assert untold <= SILENT
