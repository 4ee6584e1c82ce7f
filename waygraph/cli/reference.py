"""The page `cli.md` of the documentation site, generated from the commands and errors.

A hook of MkDocs (`mkdocs.yml`): the page exists in the built site, not in the repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, cast

import typer

from waygraph.cli import app as cli_app
from waygraph.cli.entry import INTERRUPTED
from waygraph.core.errors import WaygraphError

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

#: Width of the help texts on the page, in characters.
HELP_WIDTH = 90

_INTRODUCTION = """\
# Command line

- Every command has `--help`, with examples.
- `--json` prints one JSON document on stdout. If the command fails, the document is
  `{"error": {"type", "title", "message", "hint", "exit_code"}}`. Progress and messages go to stderr.
- `--store STORE` names the store with the maps (a folder or `s3://bucket/prefix`), `--url SERVICE` a running
  `waygraph serve` in place of it.
- Every setting can also be given in the environment (`WAYGRAPH_STORE`, nested ones with two underscores:
  `WAYGRAPH_EXPLORE__DEPTH=2`) or in a JSON file that `WAYGRAPH_CONFIG` names. Options take precedence over the
  environment, and the environment over the file.
- `WAYGRAPH_DEBUG=1` prints the traceback of an error.
"""


class _Command(Protocol):
    context_class: type[typer.Context]
    context_settings: Mapping[str, list[str]]

    def get_help(self, ctx: typer.Context) -> str: ...


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the page to the files of the site; MkDocs calls it."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "cli.md", content=reference()))
    return files


def reference() -> str:
    """Return the whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    root = cli_app.command()
    yield _INTRODUCTION
    yield from _sections("waygraph", cast("_Command", root), None)
    yield from _exit_codes()


def _sections(name: str, command: _Command, parent: typer.Context | None) -> Iterator[str]:
    """Yield the help of a command, then that of its subcommands."""
    context = _context(command, name, parent)
    yield f"## {context.command_path}\n"
    yield "```text"
    yield command.get_help(context).rstrip()
    yield "```\n"
    for subname, subcommand in getattr(command, "commands", {}).items():
        yield from _sections(subname, subcommand, context)


def _context(command: _Command, name: str, parent: typer.Context | None) -> typer.Context:
    # The width is fixed, so that the page does not depend on the terminal.
    fixed = {"info_name": name, "parent": parent, "terminal_width": HELP_WIDTH, **command.context_settings}
    return command.context_class(command, **fixed)  # type: ignore[arg-type]


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | name | when |"
    yield "| --- | --- | --- |"
    yield "| 0 | | Success. |"
    for error in sorted(_error_classes(WaygraphError), key=lambda kind: (kind.exit_code, kind.slug)):
        meaning = " ".join((error.__doc__ or "").split())
        if error is WaygraphError:
            meaning = "An unexpected error: a defect of waygraph or of its environment."
        yield f"| {error.exit_code} | `{error.slug}` | {meaning} |"
    yield f"| {INTERRUPTED} | | Interrupted (Ctrl-C). |"
    yield ""


def _error_classes(base: type[WaygraphError]) -> set[type[WaygraphError]]:
    # Only those of `waygraph.core.errors`: other modules and callers define subclasses too.
    classes = {base} if base.__module__ == "waygraph.core.errors" else set()
    return classes.union(*(_error_classes(subclass) for subclass in base.__subclasses__()))
