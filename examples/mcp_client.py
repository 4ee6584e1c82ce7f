"""Request a path over MCP, as any client of the protocol does.

    python examples/mcp_client.py maps tea.example "where can I add a credit card?"
    python examples/mcp_client.py http://127.0.0.1:8321 tea.example "where can I add a credit card?"

For a folder this script starts `waygraph mcp`; a service has its own endpoint /mcp (WAYGRAPH_API_KEY is its key).
Needs: pip install 'waygraph[mcp]' (for a folder: 'waygraph[mcp,index]').
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def connect(location: str, api_key: str | None = None) -> AsyncIterator[Client]:
    """Connect to a service's /mcp, or start `waygraph mcp` over a folder with maps."""
    if location.startswith(("http://", "https://")):
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{location}/mcp", http_client=http)) as client,
        ):
            yield client
    else:
        command = StdioServerParameters(command=sys.executable, args=["-m", "waygraph", "mcp", "--store", location])
        async with Client(stdio_client(command)) as client:
            yield client


async def main(location: str, site: str, query: str) -> None:
    """Print the screen that matches the query, and the actions that lead there."""
    async with connect(location, os.environ.get("WAYGRAPH_API_KEY")) as client:
        result = await client.call_tool("navigate", {"site": site, "query": query})
        if result.is_error:
            sys.exit(result.content[0].text)
        found = result.structured_content
        for screen in found["candidates"]:
            print(f"{screen['title']} ({screen['url']}), score {screen['score']}")
        print(found["reason"])
        for number, step in enumerate(found["way"]["steps"], start=1):
            element = step.get("value") or f"{step['role']} {step['name']!r}, {step['selector']}"
            print(f"{number}. {step['do']} {element}, then expect {step['expect_url']}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
