"""The command line: one module per command in `commands`, what they print in `display`; `main` is the entry point."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    Parameters
    ----------
    arguments
        Words after the program name; None: those of this process.

    Returns
    -------
    int
        Exit code, see docs/cli.md.
    """
    from waygraph.cli.entry import run

    return run(arguments)
