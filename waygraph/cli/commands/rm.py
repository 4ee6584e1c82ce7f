"""`waygraph rm`: remove a site from the store."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from waygraph.cli.options import JsonOption, SiteArgument, StoreOption, load_settings
from waygraph.cli.output import clean, print_json, say
from waygraph.cli.selection import mapped_site, site_key_of
from waygraph.core.errors import InvalidInput


def rm(
    site: SiteArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without confirmation.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a site with all versions of its map from the store. This cannot be undone.

    If the settings name a Qdrant server, its copies of the vectors are deleted, too.
    Asks for confirmation; without a terminal (in scripts) --yes is required.

    \b
    Examples:
      waygraph rm example.org
      waygraph rm example.org --yes --store maps
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.index.catalog.server_copies import server_copies
    from waygraph.index.store import Store
    from waygraph.index.store.upkeep.gc import readable_manifests

    settings = load_settings({"store": store})
    opened = Store.open(settings.store)
    mapped = opened.sites()
    key = site_key_of(site, mapped)
    # `numbers` also finds versions whose HEAD is damaged or missing, which can be removed too.
    versions = opened.numbers(key) or opened.versions(mapped_site(site, mapped))
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InvalidInput(f"Removing '{key}' was not confirmed.", hint="Add --yes to remove it.")
        question = f"Remove '{key}' with {len(versions)} version{'s' if len(versions) != 1 else ''}?"
        typer.confirm(clean(question), abort=True, err=True)
    with server_copies(settings.vectors) as drop_copies:
        drop_copies(readable_manifests(opened, key, versions))
        opened.remove(key)
    if as_json:
        print_json({"removed": key, "versions": versions})
    else:
        say(f"Removed {key}.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rm", short_help="Remove a site's maps.")(rm)
