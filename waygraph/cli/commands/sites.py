"""`waygraph sites`: list the mapped sites."""

from __future__ import annotations

import typer

from waygraph.cli.options import ApiKeyOption, JsonOption, StoreOption, UrlOption
from waygraph.cli.output import print_json, print_table, say
from waygraph.cli.selection import open_source
from waygraph.core.errors import StoreError


def sites(
    store: StoreOption = None, url: UrlOption = None, api_key: ApiKeyOption = None, as_json: JsonOption = False
) -> None:
    """List the mapped sites.

    \b
    Examples:
      waygraph sites
      waygraph sites --store maps --json
      waygraph sites --url http://127.0.0.1:8321
    Exit codes: 0 all sites are listed, 7 the maps of some cannot be read.
    """  # noqa: D301 - \b keeps the lines of an example together
    with open_source(store, url, api_key) as source:
        mapped = source.sites()
        unreadable = {site: error.message for site, error in getattr(source, "failures", {}).items()}
    if as_json:
        document = {"sites": [summary.model_dump(mode="json") for summary in mapped]}
        print_json({**document, "unreadable": unreadable} if unreadable else document)
    elif not mapped and not unreadable:
        say("No maps yet. To make one, run: waygraph index https://example.org")
    else:
        print_table(
            ["site", "version", "states", "edges", "published", ""],
            [[s.site, s.version, s.states, s.edges, s.created, "partial" if s.partial else ""] for s in mapped],
            right=["version", "states", "edges"],
        )
    if unreadable:
        error = StoreError(f"{len(unreadable)} site(s) cannot be read.", hint="See: waygraph store verify")
        raise typer.Exit(error.exit_code) if as_json else error


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sites", short_help="List the mapped sites.")(sites)
