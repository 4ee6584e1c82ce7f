"""`waygraph navigate`: choose the state that a query means, and print the path to it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urljoin

import typer

from waygraph.cli.display.answers import print_navigation
from waygraph.cli.options import ApiKeyOption, JsonOption, SiteArgument, StoreOption, UrlOption
from waygraph.cli.output import print_json
from waygraph.cli.selection import is_node_id, open_source, resolve_site, resolve_state
from waygraph.client.requests import validate_request
from waygraph.core.schemas import CurrentPage, NavigateRequest, SelectorName


def navigate(
    site: SiteArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The page to find, in plain words.")],
    *,
    intent: Annotated[
        str,
        typer.Option(
            "--intent", metavar="TEXT", help="What you want to do there; used to choose the state, not to search."
        ),
    ] = "",
    origin: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="State to start from.", show_default="any page")
    ] = None,
    select: Annotated[
        SelectorName | None,
        typer.Option("--select", help="Selector that chooses the state.", show_default="the configured one"),
    ] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the state that a query means and print the path to it, in one call, as an agent does.

    Retrieves candidates, chooses one of them, and prints the cheapest known actions that lead to it. STATE
    is a node id, a unique prefix of one, or a URL, absolute or relative; a URL that is not in the map
    counts as any page.

    \b
    Examples:
      waygraph navigate example.org "where can I change my address?"
      waygraph navigate example.org "open invoices" --intent "pay the oldest one" --from /account
      waygraph navigate example.org "open invoices" --select rule --json
    """  # noqa: D301 - \b keeps the lines of an example together
    with open_source(store, url, api_key) as source:
        key = resolve_site(source, site)
        current = None
        if origin is not None:
            current = (
                CurrentPage(node_id=resolve_state(source, key, origin))
                if is_node_id(origin)
                else CurrentPage(url=urljoin(source.site(key).start_url, origin))
            )
        answer = source.navigate(
            validate_request(NavigateRequest, site=key, query=query, intent=intent, current=current, select=select)
        )
    if as_json:
        print_json(answer)
    else:
        print_navigation(answer)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("navigate", short_help="Choose the state that a query means, and print the path to it.")(navigate)
