"""Where do the actors of a run live? On a private Ray of this run, or on the cluster that `RAY_ADDRESS` names."""

from __future__ import annotations

import json
import logging
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.jobs import ray_host
from waygraph.errors import EnvironmentMissing

#: Captures and vectors of the sites in flight; what does not fit is spilled to disk.
_OBJECT_STORE_BYTES = 256 * 2**20
#: Unix sockets are made below the folder; their paths may have 107 bytes, and Ray adds about 75.
_LONGEST_PARENT = 16
#: Browsers that one machine runs at once unless told otherwise.
_EXPLORERS_PER_MACHINE = 4
#: How long the private Ray may take to end; it kills what it started, so this is never long.
_END_SECONDS = 5.0

#: Settings of a private Ray that can only be given by environment variables; Ray reads them once per process.
_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # else Ray writes one into the home directory, for all Rays of this user
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # despite its name: 0 binds to loopback on every platform
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # `uv run waygraph` would rebuild its environment for every actor
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns about a future change for actors without GPU
}

#: How the private Ray is started.
_ARGUMENTS: dict[str, Any] = {
    "include_dashboard": False,
    "log_to_driver": False,
    "logging_level": logging.ERROR,
    "object_store_memory": _OBJECT_STORE_BYTES,
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connected Ray: CPUs of each machine, and the log folder when the machine is this one."""

    cpus: tuple[float, ...]
    logs: Path | None

    @property
    def default_explorers(self) -> int:
        """One per CPU, at most four per machine, at least one."""
        return max(1, sum(min(_EXPLORERS_PER_MACHINE, int(cpus)) for cpus in self.cpus))


@contextmanager
def ray_cluster() -> Iterator[Cluster]:
    """Use the Ray that is connected already, or connect to `RAY_ADDRESS`, or start a private one.

    Raises
    ------
    EnvironmentMissing
        When Ray cannot be started or reached.

    """
    address = os.environ.get("RAY_ADDRESS", "")
    if address or _connected():
        with _driver(address) as cpus:
            yield Cluster(cpus, logs=None)
        return
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with _private_ray() as host, _driver(host.address) as cpus:
        yield Cluster(cpus, logs=host.logs)


def _connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


@contextmanager
def _driver(address: str) -> Iterator[tuple[float, ...]]:
    """Be a driver of the Ray at `address`; gives the CPUs of its machines."""
    import ray  # noqa: PLC0415 - its environment must be set before

    ours = not ray.is_initialized()
    if ours:
        # Ray prints what happens to workers on the driver's stdout, where the report belongs. It has no public switch.
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EnvironmentMissing(
                f"Ray at '{address}' cannot be used: {error}",
                hint="Check RAY_ADDRESS, or unset it to run on this machine alone.",
            ) from error
    try:
        nodes = ray.nodes()  # type: ignore[no-untyped-call]
        yield tuple(c for node in nodes if node["Alive"] and (c := node["Resources"].get("CPU", 0.0)) > 0)
    finally:
        if ours:
            ray.shutdown()


@dataclass(frozen=True, slots=True)
class _PrivateRay:
    address: str
    logs: Path


@contextmanager
def _private_ray() -> Iterator[_PrivateRay]:
    """A Ray of this run alone, bound to loopback; it ends with this block or with this process, however that ends."""
    parent = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="wg-ray-", dir=parent if len(parent) <= _LONGEST_PARENT else "/tmp"))  # noqa: S108
    with (folder / "host.err").open("wb") as errors:
        host = subprocess.Popen(  # noqa: S603 - this Python, our own script
            [sys.executable, "-P", ray_host.__file__, str(folder), json.dumps(_ARGUMENTS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C in a terminal reaches the driver alone, which ends everything in order
        )
    assert host.stdin is not None  # noqa: S101 - it is a pipe
    assert host.stdout is not None  # noqa: S101 - it is a pipe
    try:
        import ray  # noqa: F401, PLC0415 - takes most of a second: meanwhile the daemons start

        address = host.stdout.readline().decode().strip()
        if not address:
            lines = (folder / "host.err").read_text(errors="replace").strip().splitlines()
            raise EnvironmentMissing(
                f"Ray could not be started: {lines[-1] if lines else 'it ended without a word'}",
                hint="Run `waygraph doctor`.",
            )
        yield _PrivateRay(address, folder / "session_latest" / "logs")
    finally:
        host.stdin.close()  # this is what ends it; it removes the folder
        host.stdout.close()
        host.wait(_END_SECONDS)
