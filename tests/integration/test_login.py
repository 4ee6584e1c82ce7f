"""`waygraph login` in a real window, on a virtual screen: the session of the window is saved."""

import asyncio
import json
import shutil
import subprocess
import sys

import pytest

from tests.sites.server import FixtureServer, Page
from waygraph.cli.commands.login import log_in
from waygraph.core.errors import BrowserMissing
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.pipeline.browser.process.find import find_browser

FORM = """<!doctype html><title>Log in</title><script>localStorage.setItem("theme-of-ann", "dark-and-long")</script>
<form method=post action=/session><input name=user><input name=password type=password><button>Log in</button></form>"""


@pytest.fixture(scope="module")
def screen():
    """A virtual screen; its server picks a free display."""
    if sys.platform != "linux" or not shutil.which("Xvfb"):
        pytest.skip("no Xvfb")
    try:
        find_browser(headed=True)
    except BrowserMissing:
        pytest.skip("no browser that shows windows")
    command = ["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "1280x800x24"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        yield f":{server.stdout.readline().strip()}"
        server.terminate()


def test_the_session_is_saved_when_the_user_finishes_or_closes_the_window(screen, monkeypatch):
    monkeypatch.setenv("DISPLAY", screen)
    pages = {"/": FORM, "/session": Page("<h1>Hello Ann</h1>", headers={"Set-Cookie": "sid=of-ann; Path=/; HttpOnly"})}

    async def user_logs_in(page):
        await page.fill("[name=user]", "ann")
        await page.fill("[name=password]", "pw")
        await page.click("button")
        await page.wait_for_selector("text=Hello Ann")

    async def and_closes_the_window(page):
        await user_logs_in(page)
        await page.close()

    with FixtureServer(pages) as site:
        settings = Settings(explore=ExploreSettings(basic_auth="ann:pw"))
        for wait_for_user in (user_logs_in, and_closes_the_window):
            state = asyncio.run(log_in(site.url, settings, initial=None, wait_for_user=wait_for_user)).state
            assert [(c["name"], c["value"]) for c in state["cookies"]] == [("sid", "of-ann")]
            assert "theme-of-ann" in json.dumps(state["origins"])
    assert ("POST", "/session") in site.requests
