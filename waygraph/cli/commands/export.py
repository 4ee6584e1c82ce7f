"""`waygraph export`: write a map as JSON or GraphML."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from waygraph.cli.options import SiteArgument, StoreOption
from waygraph.cli.output import say, write_file
from waygraph.cli.selection import open_mapped_site


def export(
    site: SiteArgument,
    *,
    form: Annotated[Literal["json", "graphml"], typer.Option("--format", help="Format of the file.")] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default="stdout")
    ] = None,
    inherited: Annotated[
        bool,
        typer.Option("--inherited", help="Include edges inherited from a parent state, which were never walked."),
    ] = False,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", help="Number of a version.", show_default="the current version"),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write the interaction graph of a site.

    The JSON is canonical: nodes and edges are sorted and there are no times, so equal maps give equal files.

    \b
    Examples:
      waygraph export example.org --format json --output example.json
      waygraph export example.org --format graphml -o example.graphml
      waygraph export example.org | jq '.nodes | length'
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.index.graph.export import to_bytes, to_graphml, to_json

    opened, key = open_mapped_site(store, site)
    read = opened.read(key, version)
    exported = (read.manifest.site, read.manifest.version, read.graph)
    if form == "json":
        document = to_json(
            *exported,
            inherited=inherited,
            recognition=read.recognition,
            leads=read.leads,
            tools=read.tools,
            descriptions=read.descriptions,
        )
        content = to_bytes(document)
    else:
        content = to_graphml(*exported, inherited=inherited).encode()
    if output is None:
        _write_stdout(content)
    else:
        write_file(output, content, option="--output")


def _write_stdout(content: bytes) -> None:
    if sys.stdout.isatty():
        # Page text must not control the terminal; a file or a pipe gets the canonical bytes.
        say(content.decode(errors="replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", short_help="Write a map as JSON or GraphML.")(export)
