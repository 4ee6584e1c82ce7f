"""Ask for a way over MCP, as any client of the protocol does.

    python examples/mcp_client.py maps tea.example "where can I add a credit card?"
    python examples/mcp_client.py http://127.0.0.1:8321 tea.example "where can I add a credit card?"

A folder is opened by `waygraph mcp`, started here; a service answers at /mcp itself (WAYGRAPH_API_KEY is its key).
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
async def connected(where: str, api_key: str | None = None) -> AsyncIterator[Client]:
    """Connect to a service's /mcp, or start `waygraph mcp` over a folder with maps."""
    if where.startswith(("http://", "https://")):
        headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{where}/mcp", http_client=http)) as client,
        ):
            yield client
    else:
        command = StdioServerParameters(command=sys.executable, args=["-m", "waygraph", "mcp", "--store", where])
        async with Client(stdio_client(command)) as client:
            yield client


async def main(where: str, site: str, query: str) -> None:
    """Print the screen that is meant, and what to do to get there."""
    async with connected(where, os.environ.get("WAYGRAPH_API_KEY")) as client:
        result = await client.call_tool("navigate", {"site": site, "query": query})
        if result.is_error:
            sys.exit(result.content[0].text)
        found = result.structured_content
        print(f"{found['chosen']['title']} ({found['chosen']['url']}): {found['reason']}")
        for number, step in enumerate(found["way"]["steps"], start=1):
            print(f"{number}. {step['do']}, then expect {step['expect_url']}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
