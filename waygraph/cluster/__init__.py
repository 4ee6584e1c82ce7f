"""Connection to Ray: the connected cluster, the one that `RAY_ADDRESS` names, or a private one on this machine.

Bulk runs and the service use it. Importing this package does not import Ray.
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
from waygraph.core.errors import EnvironmentMissing

__all__ = ["Cluster", "ClusterMachine", "PrivateRay", "is_connected", "list_machines", "ray_cluster"]

#: Timeout for connecting to the cluster's address, in seconds; Ray itself would retry for minutes.
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ClusterMachine:
    """A machine of a Ray cluster, with the CPUs and GPUs that Ray may reserve on it."""

    id: str
    cpus: float
    gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connected Ray cluster.

    Attributes
    ----------
    machines
        The machines with CPUs at the time of connecting.
    private
        The Ray that was started for this process; None if the cluster is shared.
    """

    machines: tuple[ClusterMachine, ...]
    private: PrivateRay | None

    @property
    def cpus(self) -> float:
        """CPUs of all machines."""
        return sum(machine.cpus for machine in self.machines)

    @property
    def gpus(self) -> float:
        """GPUs of all machines, in use or not."""
        return sum(machine.gpus for machine in self.machines)


@contextmanager
def ray_cluster(
    *, object_store_bytes: int, num_cpus: int | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Use the connected Ray, else connect to `RAY_ADDRESS`, else start a private Ray.

    Call it in the main thread, or in a thread that outlives the block. Ray installs its own SIGTERM handler.

    Parameters
    ----------
    object_store_bytes
        Memory of a private Ray for objects, in bytes, see `waygraph.cluster.private.private_ray`.
    num_cpus
        CPUs that a private Ray may reserve; None: all of this machine.
    environment
        Environment variables for the processes of a private Ray.

    Yields
    ------
    Cluster
        The cluster, connected for the time of the block.

    Raises
    ------
    EnvironmentMissing
        If Ray cannot be started or reached.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    if address or is_connected():
        with _connection(address) as machines:
            yield Cluster(machines, private=None)
        return
    with (
        private_ray(object_store_bytes=object_store_bytes, num_cpus=num_cpus, environment=environment or {}) as private,
        _connection(private.address) as machines,
    ):
        yield Cluster(machines, private)


def is_connected() -> bool:
    """Return whether this process is connected to a Ray."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


@contextmanager
def _connection(address: str) -> Iterator[tuple[ClusterMachine, ...]]:
    """Connect to the Ray at `address` as a driver, unless this process is connected; yield its machines."""
    import ray  # noqa: PLC0415 - importing it is slow, and it then reads the environment

    connects = not ray.is_initialized()
    if connects:
        # Ray prints the output of workers to the driver's stdout, which carries answers. There is no public switch.
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001
        try:
            _check_reachable(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (OSError, RuntimeError, ValueError) as error:
            raise EnvironmentMissing(
                f"Ray at '{address}' cannot be used: {error}",
                hint="Check RAY_ADDRESS, or unset it to run on this machine only.",
            ) from error
    try:
        yield list_machines()
    finally:
        if connects:
            ray.shutdown()


def list_machines() -> tuple[ClusterMachine, ...]:
    """Return the machines of the connected Ray that are alive and have CPUs."""
    import ray  # noqa: PLC0415 - as above

    nodes = [(node["NodeID"], node["Resources"]) for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    machines = (ClusterMachine(id_, resources.get("CPU", 0.0), resources.get("GPU", 0.0)) for id_, resources in nodes)
    return tuple(machine for machine in machines if machine.cpus > 0)


def _check_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
