"""Which options do the commands share, and how do they become `Settings`?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from waygraph.errors import InvalidInput
from waygraph.settings import Settings

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="Folder that holds the maps, or s3://bucket/prefix.",
        show_default="WAYGRAPH_STORE, else ./maps",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="SERVICE", help="Ask a running service, such as http://127.0.0.1:8321, not a store."),
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option("--api-key", metavar="KEY", envvar="WAYGRAPH_API_KEY", help="Key of the service.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text for people.")]
SiteArgument = Annotated[
    str, typer.Argument(metavar="SITE", help="A mapped site: its key (host, with port) or any URL of it.")
]


def load_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """Settings from the command line (`overrides`, nested by section; None values do not count), environment and file.

    Raises
    ------
    InvalidInput
        When a value, wherever it came from, is not a valid setting.

    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    try:
        return Settings(**_given(overrides or {}))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidInput(
            f"Invalid settings: {problems}.", hint="Check the options, the WAYGRAPH_* variables and WAYGRAPH_CONFIG."
        ) from error
    except SettingsError as error:
        raise InvalidInput(f"Invalid settings: {error}.", hint="Check the WAYGRAPH_* environment variables.") from error
    except (OSError, ValueError) as error:
        # The file that WAYGRAPH_CONFIG names: missing, unreadable or not JSON.
        raise InvalidInput(f"The settings cannot be read: {error}.", hint="Check WAYGRAPH_CONFIG.") from error


def _given(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what was not given, so that environment and file still count."""
    result: dict[str, Any] = {}
    for key, value in overrides.items():
        if isinstance(value, Mapping):
            if section := _given(value):
                result[key] = section
        elif value is not None:
            result[key] = value
    return result
