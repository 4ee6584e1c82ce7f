"""`waygraph mcp`: tools for language models, over stdin and stdout."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from waygraph.cli.options import ApiKeyOption, StoreOption, UrlOption, load_settings
from waygraph.cli.selection import check_one_source

if TYPE_CHECKING:
    from waygraph.client.map_source import AsyncMapSource


def mcp(*, store: StoreOption = None, url: UrlOption = None, api_key: ApiKeyOption = None) -> None:
    """Serve the tools of a map in the Model Context Protocol on stdin and stdout, until stdin closes.

    For programs that start their MCP servers themselves: give them this command line. The maps are those of
    a store or of a running service. A service also speaks MCP itself, at /mcp.

    Tools: list_sites, search_screens, get_screen, path_to, navigate, find_tools, describe_tool, and
    OpenAI's search and fetch.

    \b
    Examples:
      waygraph mcp --store maps
      waygraph mcp --url http://127.0.0.1:8321 --api-key KEY
    In a client's configuration:
      {"mcpServers": {"waygraph": {"command": "waygraph", "args": ["mcp", "--store", "/path/to/maps"]}}}
    """  # noqa: D301 - \b keeps the lines of an example together
    asyncio.run(_serve(store, url, api_key))


async def _serve(store: str | None, url: str | None, api_key: str | None) -> None:
    from waygraph.serve.mcp import create_server

    source = _open_source(store, url, api_key)
    try:
        await create_server(lambda _: source).run_stdio_async()
    finally:
        await source.close()


def _open_source(store: str | None, url: str | None, api_key: str | None) -> AsyncMapSource:
    check_one_source(store, url)
    if url is not None:
        from waygraph.client.service import AsyncServiceMap

        return AsyncServiceMap(url, api_key)
    from waygraph.client.map_source import ThreadedMapSource
    from waygraph.sdk.local import StoreMap

    settings = load_settings({"store": store})
    return ThreadedMapSource(StoreMap(settings.store, settings))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp", short_help="Serve tools for language models over MCP (stdio).")(mcp)
