"""What can be done from a shell? One module per group of commands; `main` is the entry point of all of them."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: the process's own) and return its exit code."""
    from waygraph.cli.entry import run

    return run(arguments)
