"""BrowserGym's `axtree_txt` of a page: its own marking script and text, over the same Chromium tree.

BrowserGym's observations are made with Playwright's sync API; this takes the same steps with the async one: mark the
elements with ids, read Chromium's accessibility tree, find the ids in it, and write it by `flatten_axtree_to_str` with
its defaults, which its demo agent and its WebArena setup use. `InlineTextBox` nodes, which repeat every text and which
not every Chromium returns, are left out in BrowserGym's favour, and so are frames. Needs `pip install --no-deps` of
browsergym-core, gymnasium, farama-notifications, cloudpickle, beautifulsoup4, soupsieve and lxml.
"""

from __future__ import annotations

import importlib
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from playwright.async_api import Page


def browsergym_version() -> str:
    """Return the version of the installed package."""
    return version("browsergym-core")


async def axtree_txt(page: Page) -> str:
    """Return the text that BrowserGym's agents get of the main frame of a page."""
    observation = importlib.import_module("browsergym.core.observation")
    obs = importlib.import_module("browsergym.utils.obs")
    scripts = files("browsergym.core").joinpath("javascript")
    mark, unmark = (scripts.joinpath(f"frame_{name}_elements.js").read_text() for name in ("mark", "unmark"))
    await page.evaluate(mark, ["", "bid", "standard_html"])
    session = await page.context.new_cdp_session(page)
    tree = await session.send("Accessibility.getFullAXTree")
    await session.detach()
    await page.evaluate(unmark)
    for node in tree["nodes"]:
        found: list[str] = []
        for entry in [each for each in node.get("properties", ()) if each["name"] == "roledescription"]:
            found, rest = observation.extract_data_items_from_aria(entry["value"]["value"])
            entry["value"]["value"] = rest
            if not rest:
                node["properties"].remove(entry)
        if "description" in node:
            other, rest = observation.extract_data_items_from_aria(node["description"]["value"])
            node["description"]["value"] = rest
            if not rest:
                del node["description"]
            found = found or other
        if found:
            (node["browsergym_id"],) = found
    tree["nodes"] = [node for node in tree["nodes"] if node["role"]["value"] != "InlineTextBox"]
    text: Any = obs.flatten_axtree_to_str(tree)
    return str(text)
