"""Which commands are there? Each command module has `register(app)`, and imports heavy parts inside its commands."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from typing import Annotated, Protocol

import typer

from waygraph.cli.output import say

app = typer.Typer(
    add_completion=True,
    rich_markup_mode=None,  # plain help: the same in a terminal, in a file and in docs/cli.md
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Modules of `waygraph.cli` in the order in which help lists their commands.
COMMAND_MODULES = (
    "index", "runs", "login", "ask", "teleport", "sites", "store", "refresh", "history", "store_care", "gc", "reencode",
    "serve", "mcp", "keys", "doctor", "demo",
)  # fmt: skip


@app.callback(invoke_without_command=True)
def waygraph(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Turn websites into maps that agents can navigate.

    \b
    Map a site, then ask where something is and how to get there:
      waygraph index https://example.org --depth 2
      waygraph search example.org "contact address"
      waygraph path example.org https://example.org/contact
    See it work on a bundled site, from nothing:
      waygraph demo
    """  # noqa: D301 - \b is typer's mark for a paragraph that keeps its lines
    if version:
        say(f"waygraph {metadata.version('waygraph')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())


class Command(Protocol):
    """What typer builds: a callable that takes the words of a command line."""

    def __call__(self, *, args: list[str], prog_name: str, standalone_mode: bool) -> object:
        """Run it; returns an exit code when a command raised `typer.Exit`."""
        ...


@cache
def command() -> Command:
    """Build the whole command once."""
    for name in COMMAND_MODULES:
        import_module(f"waygraph.cli.{name}").register(app)
    return typer.main.get_command(app)
