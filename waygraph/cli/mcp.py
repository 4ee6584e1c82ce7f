"""`waygraph mcp`: tools for language models, over standard input and output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from waygraph.cli.options import ApiKeyOption, StoreOption, UrlOption, load_settings
from waygraph.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.source import AsyncMapSource


def mcp(*, store: StoreOption = None, url: UrlOption = None, api_key: ApiKeyOption = None) -> None:
    """Answer a language model in the Model Context Protocol on stdin and stdout, until stdin ends.

    For programs that start their MCP servers themselves; give them this command line. The maps are those
    of a store or of a running service, which also answers MCP itself, at /mcp.

    Tools: list_sites, search_screens, get_screen, path_to, navigate, and OpenAI's search and fetch.

    \b
    Examples:
      waygraph mcp --store maps
      waygraph mcp --url http://127.0.0.1:8321 --api-key KEY
    In a client's configuration:
      {"mcpServers": {"waygraph": {"command": "waygraph", "args": ["mcp", "--store", "/path/to/maps"]}}}
    """  # noqa: D301 - \b keeps the lines of an example together
    asyncio.run(_answer(store, url, api_key))


async def _answer(store: str | None, url: str | None, api_key: str | None) -> None:
    from serve.mcp import create_server

    source = _open(store, url, api_key)
    try:
        await create_server(lambda _: source).run_stdio_async()
    finally:
        await source.close()


def _open(store: str | None, url: str | None, api_key: str | None) -> AsyncMapSource:
    if url is not None and store is not None:
        raise InvalidInput("Both --store and --url were given.", hint="Choose one: a folder or a running service.")
    if url is not None:
        from waygraph.client import AsyncServiceMap

        return AsyncServiceMap(url, api_key)
    from waygraph.local import StoreMap
    from waygraph.source import InThreads

    settings = load_settings({"store": store})
    return InThreads(StoreMap(settings.store, settings))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp", short_help="Answer a language model over MCP (stdio).")(mcp)
