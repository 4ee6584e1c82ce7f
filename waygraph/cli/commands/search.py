"""`waygraph search`: find the states of a site that match a query."""

from __future__ import annotations

from typing import Annotated

import typer

from waygraph.cli.display.answers import print_hits
from waygraph.cli.options import ApiKeyOption, JsonOption, SiteArgument, StoreOption, UrlOption
from waygraph.cli.output import print_json
from waygraph.cli.selection import open_source, resolve_site
from waygraph.core.schemas import Filter


def search(
    site: SiteArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to find, in plain words.")],
    *,
    k: Annotated[int, typer.Option("-k", metavar="N", help="Number of states to print.", min=1)] = 10,
    visited_only: Annotated[
        bool, typer.Option("--visited-only", help="Leave out pages that are known and were not visited.")
    ] = False,
    tools_only: Annotated[
        bool, typer.Option("--tools", help="Find what can be done (tools and forms of pages) in place of pages.")
    ] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the states of a site that match a query, best first.

    Prints the score of each state, its title, its URL, the first digits of its id (which other commands
    accept) and the text that matched best. Pages that the site links to and that were not visited are
    found too, by their links, and marked so. With --tools, each hit is a tool, by its name and inputs, and the
    nearest state that has it; 'waygraph tools' prints all of them.

    \b
    Examples:
      waygraph search example.org "where can I change my address?"
      waygraph search example.org "open invoices" -k 3 --json
      waygraph search example.org "compare two versions" --tools
      waygraph search example.org "open invoices" --url http://127.0.0.1:8321
    """  # noqa: D301 - \b keeps the lines of an example together
    with open_source(store, url, api_key) as source:
        where = Filter(visited_only=visited_only, tools_only=tools_only)
        answer = source.search(resolve_site(source, site), query, k, where)
    if as_json:
        print_json(answer)
    else:
        print_hits(answer)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search", short_help="Find the states that match a query.")(search)
