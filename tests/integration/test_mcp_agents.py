"""Agents with browsers of their own follow the ways of the MCP server: Playwright's MCP server, and browser-use.

Neither is a package of this project. The tests run where they are installed:

    npm install --no-save @playwright/mcp@0.0.83        in the repository; or PLAYWRIGHT_MCP_CLI names its cli.js
    BROWSER_USE_PYTHON=FOLDER/bin/python                an environment with browser-use==0.13.14
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exploring import ExploredShop
from tests.integration.test_examples import EXAMPLES, QUESTION, example
from waygraph.pipeline.browser.process.find import find_browser

ROOT = Path(__file__).parents[2]
PLAYWRIGHT = Path(os.environ.get("PLAYWRIGHT_MCP_CLI") or ROOT / "node_modules/@playwright/mcp/cli.js")
BROWSER_USE = os.environ.get("BROWSER_USE_PYTHON", "")
RATE = "25.5%"


@pytest.mark.skipif(
    not (PLAYWRIGHT.is_file() and shutil.which("node")), reason="@playwright/mcp is not installed, see the module"
)
def test_playwrights_mcp_server_follows_the_way(shop: ExploredShop, shop_store, tmp_path, monkeypatch, capsys):
    config = tmp_path / "config.json"
    launch = {
        "executablePath": str(find_browser().path),
        "args": ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    }
    config.write_text(json.dumps({"browser": {"launchOptions": launch}, "outputDir": str(tmp_path / "output")}))
    command = ["node", str(PLAYWRIGHT), "--headless", "--isolated", "--no-sandbox", "--config", str(config)]
    monkeypatch.setenv("PLAYWRIGHT_MCP", shlex.join(command))
    asyncio.run(example("playwright_mcp").main(str(shop_store), shop.site.url, QUESTION))
    assert RATE in capsys.readouterr().out


@pytest.mark.skipif(not BROWSER_USE, reason="browser-use is not installed, see the module")
def test_browser_use_follows_the_way(shop: ExploredShop, shop_store):
    script = Path(__file__).with_name("browser_use_script.py")
    maps = [sys.executable, "-m", "waygraph", "mcp", "--store", str(shop_store)]
    place = [str(EXAMPLES / "browser_use_agent.py"), shop.site.url, QUESTION, RATE, str(find_browser().path)]
    done = subprocess.run(
        [BROWSER_USE, str(script), *place, *maps], capture_output=True, text=True, timeout=150, check=False
    )
    assert f"ANSWER {RATE}" in done.stdout, done.stdout[-3_000:] + done.stderr[-3_000:]
