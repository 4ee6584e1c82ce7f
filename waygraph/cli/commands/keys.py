"""`waygraph keys`: create, list and revoke API keys of a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from waygraph.cli.options import JsonOption
from waygraph.cli.output import print_json, print_table, say
from waygraph.core.errors import InvalidInput
from waygraph.core.key_file import KeyFile

HELP = """Create, list and revoke API keys of a service.

\b
Example:
  waygraph keys add shopping-agent --site shop.example --file keys.json
  WAYGRAPH_SERVE__KEYS_FILE=keys.json waygraph serve --host 0.0.0.0
"""

FileOption = Annotated[
    Path, typer.Option("--file", "-f", metavar="FILE", help="Key file: WAYGRAPH_SERVE__KEYS_FILE of the service.")
]


def add(
    name: Annotated[str, typer.Argument(help="Name of the key's holder.")],
    file: FileOption = Path("keys.json"),
    site: Annotated[
        list[str] | None,
        typer.Option(help="Site that the key gives access to; repeatable.", show_default="all sites"),
    ] = None,
    rate: Annotated[float, typer.Option(min=0, help="Requests per second; 0: the service's default.")] = 0.0,
) -> None:
    """Create a key and print it, this one time: the file contains its digest only.

    A running service accepts the key within a second.

    \b
    Example:
      waygraph keys add shopping-agent --site shop.example --rate 5
    """  # noqa: D301 - \b keeps the lines of an example together
    keys, key = _read(file, may_be_new=True).with_key(name, tuple(site) if site else None, rate)
    keys.write(file)
    say(key)


def list_keys(file: FileOption = Path("keys.json"), as_json: JsonOption = False) -> None:
    """List the names of the keys, with their sites and rates."""
    keys = _read(file).keys
    if as_json:
        print_json([entry.model_dump(mode="json", exclude={"sha256"}) for entry in keys])
        return
    rows = [
        (
            entry.name,
            ", ".join(entry.sites) if entry.sites is not None else "all",
            f"{entry.rate_per_second:g}/s" if entry.rate_per_second else "default",
        )
        for entry in keys
    ]
    print_table(("name", "sites", "rate"), rows)


def revoke(name: Annotated[str, typer.Argument(help="Name of the key.")], file: FileOption = Path("keys.json")) -> None:
    """Revoke a key. A running service rejects it within a second."""
    _read(file).without(name).write(file)


def _read(file: Path, *, may_be_new: bool = False) -> KeyFile:
    if may_be_new and not file.exists():
        return KeyFile()
    try:
        return KeyFile.read(file)
    except (OSError, ValueError, ValidationError) as error:
        raise InvalidInput(f"{file} is not a key file: {error}", hint="'waygraph keys add' creates one.") from error


def register(app: typer.Typer) -> None:
    """Add the commands."""
    keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)
    keys.command()(add)
    keys.command("list")(list_keys)
    keys.command()(revoke)
    app.add_typer(keys, name="keys")
