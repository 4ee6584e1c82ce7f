"""Report a package that an optional part needs and that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from waygraph.core.errors import EnvironmentMissing

#: Packages of the extra `torch`.
TORCH_PACKAGES = frozenset({"torch", "transformers"})


def check_torch(what: str) -> None:
    """Raise EnvironmentMissing, as `needs_torch` does, if torch or transformers are not installed; import neither."""
    with needs_torch(what):
        for package in sorted(TORCH_PACKAGES):
            if find_spec(package) is None:
                raise ModuleNotFoundError(name=package)


@contextmanager
def needs_torch(what: str) -> Iterator[None]:
    """Raise EnvironmentMissing if the block imports torch or transformers and they are not installed.

    Parameters
    ----------
    what
        What needs them, as the message begins.

    Raises
    ------
    EnvironmentMissing
        With the command that installs them.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in TORCH_PACKAGES:
            raise
        raise EnvironmentMissing(
            f"{what} needs '{error.name}', which is not installed.", hint="Run: pip install 'waygraph[torch]'"
        ) from error
