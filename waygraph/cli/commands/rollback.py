"""`waygraph rollback`: publish an older version of a map again."""

from __future__ import annotations

from typing import Annotated

import typer

from waygraph.cli.options import JsonOption, SiteArgument, StoreOption
from waygraph.cli.output import print_json, say
from waygraph.cli.selection import open_mapped_site
from waygraph.core.errors import InvalidInput


def rollback(
    site: SiteArgument,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="Number of the version to publish again.", min=1)],
    *,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish an older version of a site's map again, as a new version. Nothing is deleted.

    \b
    Examples:
      waygraph history example.org
      waygraph rollback example.org 3
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.pipeline.comparison import compare_versions
    from waygraph.pipeline.jobs.publishing.changes import rollback_draft

    opened, key = open_mapped_site(store, site)
    current = opened.head(key)
    if version == current:
        raise InvalidInput(f"Version {version} of '{key}' is the current one.", hint=f"See: waygraph history {key}")
    old, new = opened.read(key, version), opened.read(key, current)
    draft = rollback_draft(old, new, compare_versions(opened, new, old))
    number = opened.publish(draft, replaces=current)
    if as_json:
        print_json({"site": key, "rollback_to": version, "replaces": current, "version": number})
    else:
        say(f"{key}: published version {number}, equal to version {version}.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rollback", short_help="Publish an older version again.")(rollback)
