"""Options of `waygraph run` for what is done before each task."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.option_values import parse_duration

if TYPE_CHECKING:
    from waygraph.agents.runner.hooks import HookOptions

ResetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--reset",
        metavar="SITE=COMMAND",
        help="Before each task of the site, run a command, or POST to a URL; repeatable.",
    ),
]
LoginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--login", metavar="SITE=COMMAND", help="Run a command that writes the session file of tasks; repeatable."
    ),
]
LoginMaxAgeOption = Annotated[
    timedelta | None,
    typer.Option(
        "--login-max-age",
        metavar="TIME",
        parser=parse_duration,
        help="Age of a session file at which --login runs again.",
        show_default="24h",
    ),
]
WaitAfterOption = Annotated[
    timedelta | None,
    typer.Option(
        "--wait-after",
        metavar="TIME",
        parser=parse_duration,
        help="Wait after tasks whose file says required_wait, before the next one on their sites.",
        show_default="20m",
    ),
]


def hook_options(
    reset: list[str] | None, login: list[str] | None, login_max_age: timedelta | None, sessions: Path
) -> HookOptions:
    """Return the hooks that options describe.

    Parameters
    ----------
    reset
        Values of `--reset`.
    login
        Values of `--login`.
    login_max_age
        Value of `--login-max-age`.
    sessions
        Folder that the names of session files are relative to.

    Returns
    -------
    HookOptions
        The hooks.

    Raises
    ------
    InvalidInput
        If a value is malformed.
    """
    from waygraph.agents.runner.hooks import HookOptions, parse_hooks

    hooks = HookOptions(parse_hooks(reset, "--reset"), parse_hooks(login, "--login"), sessions=sessions)
    return hooks if login_max_age is None else replace(hooks, login_max_age_s=login_max_age.total_seconds())
