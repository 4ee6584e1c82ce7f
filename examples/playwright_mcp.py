"""Walk to a page in the browser of Playwright's MCP server, by the way that waygraph's MCP server gives.

    python examples/playwright_mcp.py maps tea.example "where can I add a credit card?"

An agent with both servers does the same: its model calls `navigate`, then one browser tool for each step.
PLAYWRIGHT_MCP is the command of Playwright's server. Needs Node and: pip install 'waygraph[mcp,index]'
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

PLAYWRIGHT = "npx -y @playwright/mcp@0.0.83 --headless --isolated"


def calls(step: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls of Playwright's tools that do a step."""
    do, value, target = step["do"], step.get("value", ""), step.get("selector", "")
    if do == "goto":
        yield "browser_navigate", {"url": value}
    elif do in {"click", "dblclick", "contextmenu"}:
        how = {"dblclick": {"doubleClick": True}, "contextmenu": {"button": "right"}}
        yield "browser_click", {"target": target, **how.get(do, {})}
    elif do == "hover":
        yield "browser_hover", {"target": "body" if value == "away" else target}
    elif do in {"input", "submit"}:
        yield "browser_type", {"target": target, "text": value, "submit": do == "submit"}
    elif do == "select":
        yield "browser_select_option", {"target": target, "values": [value]}
    else:  # focus, press
        if target:
            move = "blur" if value == "away" else "focus"
            yield "browser_evaluate", {"target": target, "function": f"(element) => element.{move}()"}
        if do == "press":
            yield "browser_press_key", {"key": value}


def is_expected(step: dict[str, Any], url: str) -> bool:
    """Return whether an address is the one that a step expects."""
    expected = step.get("expect_url", "")
    if step.get("match") == "glob":
        return re.fullmatch(".*".join(map(re.escape, expected.split("*"))), url) is not None
    here, there = urlsplit(url), urlsplit(expected)
    same = (here.netloc, here.path or "/") == (there.netloc, there.path or "/")
    return not expected or (
        same and (step.get("match") == "path" or sorted(parse_qsl(here.query)) == sorted(parse_qsl(there.query)))
    )


async def follow(browser: Client, way: dict[str, Any]) -> str:
    """Do the steps of a way in the browser and return what Playwright's server says about the last page."""
    said = ""
    for step in way["steps"]:
        for tool, arguments in calls(step):
            result = await browser.call_tool(tool, arguments)
            said = "\n".join(block.text for block in result.content if block.type == "text")
            if result.is_error:
                raise RuntimeError(f"{step['do']} {step.get('role', '')} {step.get('name', '')}: {said}")
        page = re.search(r"Page URL: (\S+)", said)
        if page and not is_expected(step, page[1]):
            raise RuntimeError(f"At {page[1]}, not at {step['expect_url']}: ask path_to again from here.")
    return said


async def main(store: str, site: str, query: str) -> None:
    """Print the page that matches the query, as Playwright's server describes it."""
    command, *arguments = shlex.split(os.environ.get("PLAYWRIGHT_MCP", PLAYWRIGHT))
    maps = StdioServerParameters(command=sys.executable, args=["-m", "waygraph", "mcp", "--store", store])
    playwright = StdioServerParameters(command=command, args=arguments)
    async with Client(stdio_client(maps)) as waygraph, Client(stdio_client(playwright)) as browser:
        found = await waygraph.call_tool("navigate", {"site": site, "query": query})
        if found.is_error or not (answer := found.structured_content).get("way"):
            sys.exit(found.content[0].text)
        await follow(browser, answer["way"])
        page = await browser.call_tool("browser_snapshot", {})
        print(page.content[0].text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
