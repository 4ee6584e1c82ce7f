"""What compose.yaml says about a service, for benchmarks that start services without Docker Compose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[1] / "compose.yaml"


def service(name: str) -> dict[str, Any]:
    """Return the description of a service."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"][name]
    return found


def settings_without_qdrant(name: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a service, with the embedded search engine in place of the Qdrant server.

    Parameters
    ----------
    name
        Name of the service.
    variables
        Values of the variables that the file refers to.

    Returns
    -------
    dict of str to str
        The environment.
    """
    return {
        key: re.sub(r"\$\{(\w+)[^}]*\}", lambda match: variables[match[1]], value)
        for key, value in service(name)["environment"].items()
        if not key.startswith("WAYGRAPH_VECTORS__")
    }


def command(name: str) -> list[str]:
    """Return the command of a service as Compose passes it on; empty if that of the image is used."""
    return [word.replace("$$", "$") for word in service(name).get("command", ())]


def fast_refresh(pause_s: int) -> list[str]:
    """Return the command of the service `refresh` for maps of any age, with a pause of seconds in place of an hour."""
    fast = [
        word.replace("--older-than 1d", "--older-than 1s").replace("sleep 3600", f"sleep {pause_s}")
        for word in command("refresh")
    ]
    assert fast != command("refresh"), "compose.yaml schedules the refresh in another way"
    return fast
