"""What does docs/cli.md say? It is written from commands and errors: `python -m waygraph.cli.reference FILE`.

A test compares the file with what this module writes, so the page cannot go stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, cast

import typer

from waygraph.cli.app import command
from waygraph.cli.entry import INTERRUPTED
from waygraph.errors import WaygraphError

HELP_WIDTH = 90

_INTRODUCTION = """\
# Command line

Written by `make docs` from the commands themselves; edit their docstrings, not this page.

- `--help` on every command, with examples.
- `--json` prints one JSON document on stdout for machines, also when something fails: then it is
  `{"error": {"type", "title", "message", "hint", "exit_code"}}`. Messages for people go to stderr.
- `--store PATH` names the folder that holds the maps, `--url SERVICE` a running `waygraph serve` instead of it.
- Every setting can also come from the environment (`WAYGRAPH_STORE`, nested ones with two underscores:
  `WAYGRAPH_EXPLORE__DEPTH=2`) or from a JSON file that `WAYGRAPH_CONFIG` names. Options win over the environment,
  the environment over the file.
- `WAYGRAPH_DEBUG=1` shows the traceback behind an error message.
"""


class _Command(Protocol):
    context_class: type[typer.Context]
    context_settings: Mapping[str, list[str]]

    def get_help(self, ctx: typer.Context) -> str: ...


def reference() -> str:
    """Return the whole page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    root = command()
    yield _INTRODUCTION
    yield from _sections("waygraph", cast("_Command", root), None)
    yield from _exit_codes()


def _sections(name: str, shown: _Command, above: typer.Context | None) -> Iterator[str]:
    """The help of a command, then that of its subcommands."""
    context = _context(shown, name, above)
    yield f"## {context.command_path}\n"
    yield "```text"
    yield shown.get_help(context).rstrip()
    yield "```\n"
    for below, sub in getattr(shown, "commands", {}).items():
        yield from _sections(below, sub, context)


def _context(shown: _Command, name: str, parent: typer.Context | None) -> typer.Context:
    # The width is fixed, so that the page does not depend on somebody's terminal.
    fixed = {"info_name": name, "parent": parent, "terminal_width": HELP_WIDTH, **shown.context_settings}
    return shown.context_class(shown, **fixed)  # type: ignore[arg-type]


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | name | when |"
    yield "| --- | --- | --- |"
    yield "| 0 | | It worked. |"
    for error in sorted(_kinds(WaygraphError), key=lambda kind: (kind.exit_code, kind.slug)):
        meaning = " ".join((error.__doc__ or "").split())
        if error is WaygraphError:
            meaning = "A defect: something that no message was written for."
        yield f"| {error.exit_code} | `{error.slug}` | {meaning} |"
    yield f"| {INTERRUPTED} | | Interrupted (Ctrl-C). |"
    yield ""


def _kinds(kind: type[WaygraphError]) -> set[type[WaygraphError]]:
    # Classes defined elsewhere (a caller's own) are not ours to document.
    ours = {kind} if kind.__module__ == "waygraph.errors" else set()
    return ours.union(*(_kinds(below) for below in kind.__subclasses__()))


def main(path: str) -> None:
    """Write the page."""
    Path(path).write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
