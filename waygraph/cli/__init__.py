"""The command line: one module per command in `commands`, what they print in `display`.

`console` is the entry point of the process, `main` runs one command line.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def console() -> None:
    """Run the command line of this process, and end the process with its exit code.

    The process ends behind the last exit handler of Python: threads are joined, files are closed, temporary folders are
    removed. What would come then, the destructors of compiled libraries, is left out: that of pyarrow's thread pools
    sometimes aborts the process (signal 6) on a busy machine, after the command has printed everything.
    """
    ended: list[int] = []
    atexit.register(_end, ended)  # exit handlers run in the reverse order: this one is the last
    ended.append(main())
    sys.exit(ended[0])


def _end(ended: list[int]) -> None:
    if ended:  # else an exception or `SystemExit` ends the process, and Python reports it
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # `main` has flushed, and reported what failed
                stream.flush()
        os._exit(ended[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    Parameters
    ----------
    arguments
        Words after the program name; None: those of this process.

    Returns
    -------
    int
        Exit code, see `waygraph.core.errors`.
    """
    from waygraph.cli.entry import run

    return run(arguments)
