"""`waygraph export` and `waygraph rm`: take a map out of the store, or away."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from waygraph.cli.options import JsonOption, SiteArgument, StoreOption, load_settings
from waygraph.cli.output import print_json, say
from waygraph.cli.source import site_key_of
from waygraph.errors import InvalidInput, NotFound


class ExportFormat(StrEnum):
    """What a map can be written as."""

    JSON = "json"
    GRAPHML = "graphml"


def export(
    site: SiteArgument,
    *,
    form: Annotated[
        ExportFormat, typer.Option("--format", help="json, or graphml for graph tools.")
    ] = ExportFormat.JSON,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write.", show_default="stdout")
    ] = None,
    inherited: Annotated[
        bool, typer.Option("--inherited", help="Also edges taken over from a parent state, never walked.")
    ] = False,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="A published version.", show_default="the current one")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write the interaction graph of a site.

    The JSON is canonical: nodes and edges sorted, no times, so that two equal maps are equal files.

    \b
    Examples:
      waygraph export example.org --format json --output example.json
      waygraph export example.org --format graphml -o example.graphml
      waygraph export example.org | jq '.nodes | length'
    """  # noqa: D301 - \b keeps the lines of an example together
    from index.graph.export import to_bytes, to_graphml, to_json
    from index.store import Store

    opened = Store.open(load_settings({"store": store}).store)
    snapshot = opened.read(_stored_site(opened.sites(), site), version)
    arguments = (snapshot.manifest.site, snapshot.manifest.version, snapshot.graph)
    if form is ExportFormat.JSON:
        content = to_bytes(to_json(*arguments, inherited=inherited, recognition=snapshot.recognition))
    else:
        content = to_graphml(*arguments, inherited=inherited).encode()
    if output is None:
        _write_stdout(content)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise InvalidInput(f"Cannot write {output}: {error.strerror}.", hint="Choose another --output.") from error


def _write_stdout(content: bytes) -> None:
    if sys.stdout.isatty():
        # What pages say must not steer the terminal; a file or a pipe gets the canonical bytes.
        say(content.decode(errors="replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def _stored_site(mapped: list[str], text: str) -> str:
    key = site_key_of(text, mapped)
    if key not in mapped:
        raise NotFound(
            f"Site '{key}' is not mapped.", hint=f"Mapped: {', '.join(mapped[:10]) or 'none yet'}. See: waygraph sites"
        )
    return key


def rm(
    site: SiteArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a site with all versions of its map from the store. This cannot be undone.

    Asks first; without a terminal (scripts) it needs --yes.

    \b
    Examples:
      waygraph rm example.org
      waygraph rm example.org --yes --store maps
    """  # noqa: D301
    from index.store import Store

    opened = Store.open(load_settings({"store": store}).store)
    mapped = opened.sites()
    key = site_key_of(site, mapped)
    # Not `versions`: one whose HEAD is damaged or lost can be removed too.
    versions = opened.numbers(key) or opened.versions(_stored_site(mapped, site))
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InvalidInput(f"Removing '{key}' was not confirmed.", hint="Add --yes to remove without asking.")
        question = f"Remove '{key}' with {len(versions)} version{'s' if len(versions) != 1 else ''}?"
        typer.confirm(question, abort=True, err=True)
    opened.remove(key)
    if as_json:
        print_json({"removed": key, "versions": versions})
    else:
        say(f"Removed {key}.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("export", short_help="Write a map as JSON or GraphML.")(export)
    app.command("rm", short_help="Remove a site's maps.")(rm)
