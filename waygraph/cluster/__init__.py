"""Which Ray is used? The one that is connected already, the one that `RAY_ADDRESS` names, or a private one.

Bulk runs and the service share it. Importing it does not import Ray.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from waygraph.cluster.private import PrivateRay, private_ray
from waygraph.errors import EnvironmentMissing

__all__ = ["Cluster", "Machine", "PrivateRay", "machines", "ray_cluster"]

#: Longest wait for a cluster's address to answer; Ray itself would try for minutes.
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a Ray, and how many CPUs and GPUs it shares out."""

    id: str
    cpus: float
    gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connected Ray.

    Attributes
    ----------
    machines : those with CPUs, when it was connected.
    private : the Ray that was started for this process; None when it is shared with others.

    """

    machines: tuple[Machine, ...]
    private: PrivateRay | None

    @property
    def cpus(self) -> float:
        """CPUs of all machines."""
        return sum(machine.cpus for machine in self.machines)

    @property
    def gpus(self) -> float:
        """GPUs of all machines, whoever uses them."""
        return sum(machine.gpus for machine in self.machines)


@contextmanager
def ray_cluster(
    *, object_store_bytes: int, num_cpus: int | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Use the Ray that is connected already, or connect to `RAY_ADDRESS`, or start a private one.

    Call it in the main thread, or in one that outlives the block. Ray takes SIGTERM for itself.

    Parameters
    ----------
    object_store_bytes, num_cpus, environment
        Of a private Ray, see `waygraph.cluster.private.private_ray`; any other has its own.

    Raises
    ------
    EnvironmentMissing
        When Ray cannot be started or reached.

    """
    address = os.environ.get("RAY_ADDRESS", "")
    if address or _connected():
        with _driver(address) as found:
            yield Cluster(found, private=None)
        return
    with (
        private_ray(object_store_bytes=object_store_bytes, num_cpus=num_cpus, environment=environment or {}) as private,
        _driver(private.address) as found,
    ):
        yield Cluster(found, private)


def _connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


@contextmanager
def _driver(address: str) -> Iterator[tuple[Machine, ...]]:
    """Be a driver of the Ray at `address`; gives its machines."""
    import ray  # noqa: PLC0415 - slow to import, and it reads its environment then

    ours = not ray.is_initialized()
    if ours:
        # Ray prints what happens to workers on the driver's stdout, where answers belong. It has no public switch.
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001
        try:
            _check_reachable(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (OSError, RuntimeError, ValueError) as error:
            raise EnvironmentMissing(
                f"Ray at '{address}' cannot be used: {error}",
                hint="Check RAY_ADDRESS, or unset it to run on this machine alone.",
            ) from error
    try:
        yield machines()
    finally:
        if ours:
            ray.shutdown()


def machines() -> tuple[Machine, ...]:
    """Machines of the connected Ray that are there now and have CPUs."""
    import ray  # noqa: PLC0415 - as above

    nodes = [(node["NodeID"], node["Resources"]) for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    found = (Machine(name, has.get("CPU", 0.0), has.get("GPU", 0.0)) for name, has in nodes)
    return tuple(machine for machine in found if machine.cpus > 0)


def _check_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
