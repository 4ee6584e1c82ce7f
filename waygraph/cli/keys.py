"""`waygraph keys`: who may ask a service, for which sites, how often."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from waygraph.cli.options import JsonOption
from waygraph.cli.output import print_json, print_table, say
from waygraph.errors import InvalidInput
from waygraph.key_file import KeyFile

HELP = """Make, list and revoke API keys of a service.

\b
Example:
  waygraph keys add shopping-agent --site shop.example --file keys.json
  WAYGRAPH_SERVE__KEYS_FILE=keys.json waygraph serve --host 0.0.0.0
"""

FileOption = Annotated[
    Path, typer.Option("--file", "-f", metavar="FILE", help="The key file: WAYGRAPH_SERVE__KEYS_FILE of the service.")
]


def add(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    file: FileOption = Path("keys.json"),
    site: Annotated[list[str] | None, typer.Option(help="A site it may ask for; may be repeated. None: all.")] = None,
    rate: Annotated[float, typer.Option(min=0, help="Requests a second; 0: the service's default.")] = 0.0,
) -> None:
    """Make a key and print it, once: the file holds a digest. A running service knows it within a second.

    \b
    Example:
      waygraph keys add shopping-agent --site shop.example --rate 5
    """  # noqa: D301
    kept, key = _read(file, may_be_new=True).with_key(name, tuple(site) if site else None, rate)
    kept.write(file)
    say(key)


def list_keys(file: FileOption = Path("keys.json"), as_json: JsonOption = False) -> None:
    """List names, sites and rates."""
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
    """Take a key away. A running service refuses it within a second."""
    _read(file).without(name).write(file)


def _read(file: Path, *, may_be_new: bool = False) -> KeyFile:
    if may_be_new and not file.exists():
        return KeyFile()
    try:
        return KeyFile.read(file)
    except (OSError, ValueError, ValidationError) as error:
        raise InvalidInput(f"{file} is no key file: {error}", hint="'waygraph keys add' makes one.") from error


def register(app: typer.Typer) -> None:
    """Add the commands."""
    keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)
    keys.command()(add)
    keys.command("list")(list_keys)
    keys.command()(revoke)
    app.add_typer(keys, name="keys")
