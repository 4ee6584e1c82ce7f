"""The typer application: its commands, and the help that is printed without one."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from typing import Annotated, Protocol

import typer

from waygraph.cli.output import say

app = typer.Typer(
    add_completion=True,
    rich_markup_mode=None,  # plain help: the same in a terminal, in a file and in the documentation site
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Modules of `waygraph.cli.commands`, in the order in which the help lists their commands.
COMMAND_MODULES = (
    "index", "runs", "login", "search", "path", "navigate", "teleport", "sites", "show", "tools", "report", "export",
    "rm", "store", "refresh", "history", "diff", "rollback", "gc", "reencode", "describe",
    "serve", "mcp", "keys", "do", "tasks", "run",
    "score", "doctor", "demo",
)  # fmt: skip


@app.callback(invoke_without_command=True)
def waygraph(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Turn websites into maps that agents search and navigate.

    \b
    Map a site, find a page in the map, and print the path to it:
      waygraph index https://example.org --depth 2
      waygraph search example.org "contact address"
      waygraph path example.org https://example.org/contact
    Try everything on a bundled site, without any setup:
      waygraph demo
    """  # noqa: D301 - \b is typer's mark for a paragraph that keeps its lines
    if version:
        say(f"waygraph {metadata.version('waygraph')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())


class Command(Protocol):
    """The callable that typer builds from an application."""

    def __call__(self, *, args: list[str], prog_name: str, standalone_mode: bool) -> object:
        """Run a command line; return the exit code if the command raised `typer.Exit`."""
        ...


@cache
def command() -> Command:
    """Build the application with all commands, once."""
    for name in COMMAND_MODULES:
        import_module(f"waygraph.cli.commands.{name}").register(app)
    return typer.main.get_command(app)
