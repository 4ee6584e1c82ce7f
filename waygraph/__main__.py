"""Entry point of `python -m waygraph`, the same as the command `waygraph`."""

from waygraph.cli import console

console()
