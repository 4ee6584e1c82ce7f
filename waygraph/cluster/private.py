"""A private Ray for one process: bound to loopback, protected by its own token, ended together with the process."""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import secrets
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from waygraph.cluster import supervisor
from waygraph.cluster.supervisor import RAY_FOLDER
from waygraph.core.errors import EnvironmentMissing
from waygraph.core.locked_folders import locked_folder

log = logging.getLogger(__name__)

#: Longest parent of the folder, in bytes: paths of the Unix sockets below it are limited to 107 bytes, of which Ray
#: uses about 75, the folder's name 16, and that of Ray's own folder in it 2.
_LONGEST_PARENT = 14
#: Attempts to start Ray: on a busy machine its processes miss each other's timeouts.
_START_ATTEMPTS = 2
_TELLING = re.compile(r"error|fail|exception|timed out|refused|denied|no space", re.IGNORECASE)
#: Timeout for the supervisor to end, in seconds. It kills its processes, which takes less.
_END_SECONDS = 5.0

#: Options of Ray that exist as environment variables only. Ray's ports execute code for every client: all of them are
#: on loopback, except one of each replica of Ray Serve, and all require the token.
_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(
        32
    ),  # else Ray writes one token for all clusters of this user into the home directory
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # despite the name, 0 binds to loopback on every platform
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else `uv run waygraph` rebuilds its environment for every actor
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns about a future change for actors without GPU
    "RAY_worker_niceness": "0",  # else explorers, encoders and browsers run at nice 15, behind everything else
}


@dataclass(frozen=True, slots=True)
class PrivateRay:
    """A running private Ray.

    Attributes
    ----------
    address
        Address that drivers connect to.
    logs
        Folder with the logs of its processes.
    lifeline
        Pipe that reaches its end when Ray has ended.
    """

    address: str
    logs: Path
    lifeline: IO[bytes]

    @property
    def has_ended(self) -> bool:
        """Whether Ray has ended; calls to it would only time out."""
        return bool(select.select([self.lifeline], [], [], 0)[0])


@contextmanager
def private_ray(
    *, object_store_bytes: int, num_cpus: int | None, environment: Mapping[str, str]
) -> Iterator[PrivateRay]:
    """Start a Ray that ends with the block, or with this process, even if the process is killed.

    Files that its processes leave in their temporary folder are removed with it.

    Parameters
    ----------
    object_store_bytes
        Memory for objects, in bytes, at least 80 MB; objects beyond it are spilled to disk.
    num_cpus
        CPUs that Ray may reserve; None: all of this machine.
    environment
        Further environment variables for its processes and this one; variables that the user has set take precedence.

    Yields
    ------
    PrivateRay
        The running Ray.

    Raises
    ------
    EnvironmentMissing
        If Ray does not start.
    """
    arguments = {
        "num_cpus": num_cpus,
        "object_store_memory": object_store_bytes,
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
    }
    set_by_user = {name: os.environ[name] for name in environment if name in os.environ}
    with _environment({**environment, **set_by_user, **_ENVIRONMENT}), ExitStack() as stack:
        yield _start(arguments, stack)


def _start(arguments: dict[str, Any], stack: ExitStack) -> PrivateRay:
    """Start Ray, once more if that fails. `stack` ends it."""
    for attempt in range(1, _START_ATTEMPTS + 1):
        process, folder = stack.enter_context(_supervisor(arguments))
        import ray  # noqa: F401, PLC0415 - takes most of a second, in which the daemons start

        _reread_environment()
        lifeline = process.stdout
        assert lifeline is not None  # noqa: S101 - it is a pipe
        if address := lifeline.readline().decode().strip():
            return PrivateRay(address, folder / RAY_FOLDER / "session_latest" / "logs", lifeline)
        problem = start_problem((folder / "supervisor.err").read_text(errors="replace"))
        stack.pop_all().close()
        if attempt < _START_ATTEMPTS:
            log.warning("ray/start_failed %s; it is started once more", problem)
    raise EnvironmentMissing(f"Ray could not be started: {problem}", hint="Run `waygraph doctor`.")


def start_problem(output: str) -> str:
    r"""Return the line of the supervisor's output that says most about why Ray did not start.

    >>> start_problem("E raylet.cc: Failed to connect to GCS\nFatal Python error: Aborted\n\n<no Python frame>\n")
    'E raylet.cc: Failed to connect to GCS'
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # The stack that Python prints when a library aborts the process says nothing about the reason.
    end = next((i for i, line in enumerate(lines) if line.startswith("Fatal Python error")), len(lines))
    telling = [line for line in lines[:end] if _TELLING.search(line)] or lines[:end] or lines
    return telling[-1] if telling else "it ended without a message"


@contextmanager
def _supervisor(arguments: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) > _LONGEST_PARENT:
        parent = "/tmp"  # noqa: S108
    with locked_folder(parent, "wg-ray-") as (folder, lock):
        with (folder / "supervisor.err").open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603 - this Python, our own script
                [sys.executable, "-P", supervisor.__file__, str(folder), json.dumps(arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "TMPDIR": str(folder)},  # files that a killed worker leaves go with the folder
                start_new_session=True,  # Ctrl-C reaches the driver only, which ends Ray in order
                pass_fds=(lock,),
            )
        try:
            yield process, folder
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()  # closing its stdin ends the supervisor, which removes the folder
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the time of the block."""
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
    """Make Ray read its environment variables again: it reads them on import and first use, possibly long before."""
    if not hasattr(sys.modules.get("ray"), "is_initialized"):
        return  # not imported, or an interrupt cut its import short
    raylet: Any = importlib.import_module("ray._raylet")  # compiled, without types
    constants: Any = importlib.import_module("ray._private.ray_constants")
    constants.ENABLE_RAY_CLUSTER = constants.env_bool(constants.ENABLE_RAY_CLUSTERS_ENV_VAR, True)
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()
