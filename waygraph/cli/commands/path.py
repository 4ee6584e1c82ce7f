"""`waygraph path`: print the cheapest known path to a state."""

from __future__ import annotations

from typing import Annotated

import typer

from waygraph.cli.display.answers import print_path
from waygraph.cli.options import ApiKeyOption, JsonOption, SiteArgument, StoreOption, UrlOption
from waygraph.cli.output import print_json
from waygraph.cli.selection import STATE_HELP, open_source, resolve_site, resolve_state


def path(
    site: SiteArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help=STATE_HELP)],
    *,
    origin: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="State to start from.", show_default="any page")
    ] = None,
    no_goto: Annotated[
        bool,
        typer.Option("--no-goto", help="Use actions on pages only and load no URL; starts at the start page."),
    ] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cheapest known sequence of actions that leads to a state.

    STATE and TARGET are node ids, unique prefixes of ids (4 digits or more), or URLs of the site, absolute
    or relative to its start URL. Without --from the path starts with loading a URL.

    \b
    Examples:
      waygraph path example.org 3f2a9c81
      waygraph path example.org /account/addresses --from / --no-goto
      waygraph path example.org 3f2a9c81 --from https://example.org/help --json
    """  # noqa: D301 - \b keeps the lines of an example together
    with open_source(store, url, api_key) as source:
        key = resolve_site(source, site)
        target_id = resolve_state(source, key, target)
        if origin is not None:
            start: str | None = resolve_state(source, key, origin)
        else:
            start = source.site(key).start_node_id if no_goto else None
        answer = source.path(key, start, target_id, allow_goto=not no_goto)
    if as_json:
        print_json(answer)
    else:
        print_path(answer)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("path", short_help="Print the path to a state.")(path)
