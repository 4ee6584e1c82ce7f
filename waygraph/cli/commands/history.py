"""`waygraph history`: list the versions of a map."""

from __future__ import annotations

from typing import Any

import typer

from waygraph.cli.options import JsonOption, SiteArgument, StoreOption
from waygraph.cli.output import print_json, print_table
from waygraph.cli.selection import open_mapped_site


def history(site: SiteArgument, *, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the versions of a site's map: when each was published, how it was made, and what changed.

    \b
    Examples:
      waygraph history example.org
      waygraph history example.org --json
    """  # noqa: D301 - \b keeps the lines of an example together
    opened, key = open_mapped_site(store, site)
    current = opened.head(key)
    versions = []
    for number in opened.versions(key):
        manifest = opened.manifest(key, number)
        refresh = manifest.report.get("refresh") or {}
        versions.append(
            {
                "version": number,
                "created": manifest.created,
                "current": number == current,
                "states": manifest.counts.states,
                "edges": manifest.counts.edges,
                "encoder": manifest.encoder.name,
                "partial": manifest.partial,
                "refresh_of": refresh.get("of"),
                "rollback_to": manifest.report.get("rollback_to"),
                "reencoded_from": manifest.report.get("reencoded_from"),
                "described_from": manifest.report.get("described_from"),
                "changes": refresh.get("states", {}),
            }
        )
    if as_json:
        print_json({"site": key, "versions": versions})
        return
    columns = ("version", "created", "states", "edges")
    rows = [
        (*(version[name] for name in columns), _origin(version), "current" * version["current"]) for version in versions
    ]
    print_table(("version", "published", "states", "edges", "", ""), rows, right=("version", "states", "edges"))


def _origin(version: dict[str, Any]) -> str:
    """Return how a version was made."""
    if version["rollback_to"]:
        return f"rollback to {version['rollback_to']}"
    if version["refresh_of"]:
        changes = ", ".join(f"{count} {verdict}" for verdict, count in sorted(version["changes"].items()))
        return f"refresh of {version['refresh_of']}: {changes}"
    if version["described_from"]:
        return f"described from {version['described_from']}"
    return f"reencoded from {version['reencoded_from']}" if version["reencoded_from"] else "explored"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("history", short_help="List the versions of a site's map.")(history)
