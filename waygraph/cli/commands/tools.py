"""`waygraph tools`: list what one can do on a site, or write it as a catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from waygraph.cli.display.answers import tool_text
from waygraph.cli.options import ApiKeyOption, SiteArgument, StoreOption, UrlOption
from waygraph.cli.output import clean, print_json, say
from waygraph.cli.selection import STATE_HELP, open_source, resolve_site, resolve_state
from waygraph.core.schemas import ToolsAnswer
from waygraph.core.text import shortened

#: Tools of one request.
_PART = 500
#: Longest description that is printed, in characters.
_MAX_TEXT = 100


def tools(
    site: SiteArgument,
    *,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help=f"Only tools of this state. {STATE_HELP}")
    ] = None,
    form: Annotated[
        Literal["text", "json", "mcp", "openapi", "webmcp"],
        typer.Option(
            "--format",
            help="json: everything; mcp: MCP tool definitions; openapi: an OpenAPI document of the GET forms; "
            "webmcp: HTML by which the site's owner could declare the inferred ones.",
        ),
    ] = "text",
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
) -> None:
    """List what one can do on a site, with the inputs: tools that its pages declare, and its forms.

    Prints the name of each tool, whether it reads or may change something, its inputs (* if required), its
    description, the number of states that have it, and the URL and the first digits of the nearest one's id.
    All texts are the site's own.

    \b
    Examples:
      waygraph tools example.org
      waygraph tools example.org --state /account
      waygraph tools example.org --format mcp > tools.json
    """  # noqa: D301 - \b keeps the lines of an example together
    with open_source(store, url, api_key) as source:
        key = resolve_site(source, site)
        wanted = resolve_state(source, key, state) if state is not None else ""
        answer = source.tools(key, state=wanted, limit=_PART)
        while len(answer.tools) < answer.total:
            more = source.tools(key, state=wanted, first=len(answer.tools), limit=_PART)
            if not more.tools:
                break  # another version was published meanwhile
            answer.tools += more.tools
    _print(answer, form)


def _print(answer: ToolsAnswer, form: str) -> None:
    if form == "json":
        print_json(answer)
    elif form == "mcp":
        from waygraph.client.tool_formats.mcp import mcp_tools

        print_json({"tools": mcp_tools(answer.site, answer.tools)})
    elif form == "openapi":
        from waygraph.client.tool_formats.openapi import openapi_document

        print_json(openapi_document(answer.site, answer.version, answer.tools))
    elif form == "webmcp":
        from waygraph.client.tool_formats.webmcp import webmcp_declarations

        say(webmcp_declarations(answer.site, answer.tools).rstrip("\n"))
    else:
        for line in _lines(answer):
            say(line)


def _lines(answer: ToolsAnswer) -> Iterator[str]:
    if not answer.tools:
        yield "No tools: the pages declare none and have no forms, or the map was made before tools were recorded."
    for tool in answer.tools:
        yield tool_text(tool)
        if text := clean(tool.description or tool.title, one_line=True):
            yield f"    {shortened(text, _MAX_TEXT)}"
        more = f" and {tool.state_count - 1} more" if tool.state_count > 1 else ""
        yield f"    {tool.url}  [{tool.states[0][:8]}]{more}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tools", short_help="List what one can do on a site, with the inputs.")(tools)
