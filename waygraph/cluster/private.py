"""How does a process get a Ray of its own? On loopback, behind a token of its own, gone when the process is gone."""

from __future__ import annotations

import importlib
import json
import logging
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from waygraph.cluster import host as ray_host
from waygraph.errors import EnvironmentMissing

#: Unix sockets are made below the folder; their paths may have 107 bytes, and Ray adds about 75.
_LONGEST_PARENT = 16
#: How long ending it may take. It kills what it started, so this is never long.
_END_SECONDS = 5.0

#: What can only be given by environment variables. Ray's ports run code for whoever reaches them: all are on loopback,
#: except one of each replica of Ray Serve, and all ask for the token.
_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # else Ray writes one into the home directory, for all Rays of this user
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # despite its name: 0 binds to loopback on every platform
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # `uv run waygraph` would rebuild its environment for every actor
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns about a future change for actors without GPU
}


@dataclass(frozen=True, slots=True)
class PrivateRay:
    """Where it listens, where its processes write their logs, and a pipe that ends when it does."""

    address: str
    logs: Path
    lifeline: IO[bytes]

    @property
    def ended(self) -> bool:
        """Whether it is gone, so that calling it would only take long."""
        return bool(select.select([self.lifeline], [], [], 0)[0])


@contextmanager
def private_ray(
    *, object_store_bytes: int, num_cpus: int | None, environment: Mapping[str, str]
) -> Iterator[PrivateRay]:
    """Start a Ray; it ends with this block, or with this process, however that ends.

    What its processes put into the temporary folder ends with it as well.

    Parameters
    ----------
    object_store_bytes
        Memory for objects; more of them are spilled to disk. At least 80 MB.
    num_cpus
        CPUs that it shares out; None: as many as there are.
    environment
        Further variables for its processes and this one; what the user has set wins.

    Raises
    ------
    EnvironmentMissing
        When it does not start.

    """
    arguments = {
        "num_cpus": num_cpus,
        "object_store_memory": object_store_bytes,
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
    }
    users = {name: os.environ[name] for name in environment if name in os.environ}
    with _environment({**environment, **users, **_ENVIRONMENT}), _host(arguments) as (host, folder):
        import ray  # noqa: F401, PLC0415 - takes most of a second: meanwhile the daemons start

        _reread_environment()
        assert host.stdout is not None  # noqa: S101 - it is a pipe
        address = host.stdout.readline().decode().strip()
        if not address:
            lines = (folder / "host.err").read_text(errors="replace").strip().splitlines()
            raise EnvironmentMissing(
                f"Ray could not be started: {lines[-1] if lines else 'it ended without a word'}",
                hint="Run `waygraph doctor`.",
            )
        yield PrivateRay(address, folder / "session_latest" / "logs", host.stdout)


@contextmanager
def _host(arguments: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="wg-ray-", dir=parent if len(parent) <= _LONGEST_PARENT else "/tmp"))  # noqa: S108
    with (folder / "host.err").open("wb") as errors:
        host = subprocess.Popen(  # noqa: S603 - this Python, our own script
            [sys.executable, "-P", ray_host.__file__, str(folder), json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "TMPDIR": str(folder)},  # what a killed worker leaves there goes with the folder
            start_new_session=True,  # Ctrl-C in a terminal reaches us alone, which ends everything in order
        )
    try:
        yield host, folder
    finally:
        for pipe in (host.stdin, host.stdout):
            if pipe is not None:
                pipe.close()  # the end of its stdin is what ends the host; it removes the folder
        try:
            host.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            host.kill()
            host.wait()
        shutil.rmtree(folder, ignore_errors=True)  # in case that the host was killed


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        _reread_environment()


def _reread_environment() -> None:
    """Ray reads these variables when it is imported or first used, which may have been long ago in this process."""
    if not hasattr(sys.modules.get("ray"), "is_initialized"):
        return  # an interrupt came in the middle of its import
    raylet: Any = importlib.import_module("ray._raylet")  # compiled, without types
    constants: Any = importlib.import_module("ray._private.ray_constants")
    constants.ENABLE_RAY_CLUSTER = constants.env_bool(constants.ENABLE_RAY_CLUSTERS_ENV_VAR, True)
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()
