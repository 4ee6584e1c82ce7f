"""Which actors a run uses: those of Ray, or processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from waygraph.cluster import ClusterMachine, is_connected, ray_cluster
from waygraph.core.settings import Settings
from waygraph.pipeline.encode.registry import wants_gpu
from waygraph.pipeline.jobs.actors.local_actors import local_actors, this_machine
from waygraph.pipeline.jobs.actors.protocol import ActorSystem

#: Object store of a private Ray, for captures and vectors of sites in progress. The rest is spilled to disk.
_OBJECT_STORE_BYTES = 256 * 2**20


@contextmanager
def actor_system(settings: Settings, *, sites: int) -> Iterator[ActorSystem]:
    """Start the actors of a run, and end them with the block.

    Parameters
    ----------
    settings
        Settings of the run.
    sites
        Number of sites that are left.

    Yields
    ------
    ActorSystem
        The actors.

    Raises
    ------
    EnvironmentMissing
        If Ray cannot be started or reached, or there is no room for temporary files.
    """
    if not uses_ray(settings, sites=sites, machine=this_machine()):
        with local_actors() as local:
            yield local
        return
    with ray_cluster(object_store_bytes=_OBJECT_STORE_BYTES) as cluster:
        from waygraph.pipeline.jobs.actors.ray_actors import RayActors  # noqa: PLC0415 - Ray reads its environment

        yield RayActors(cluster.private)


def uses_ray(settings: Settings, *, sites: int, machine: ClusterMachine) -> bool:
    """Return whether a run uses Ray: a cluster, more sites than CPUs, or several GPUs, if the settings do not say.

    Ray takes seconds to start and a quarter of a gigabyte, and keeps captures of many sites outside this process.

    Parameters
    ----------
    settings
        Settings of the run.
    sites
        Number of sites that are left.
    machine
        This machine.

    Returns
    -------
    bool
        Whether it does.
    """
    if settings.jobs.ray is not None:
        return settings.jobs.ray
    if os.environ.get("RAY_ADDRESS") or is_connected():
        return True
    return sites > machine.cpus or (machine.gpus > 1 and wants_gpu(settings.encode.encoder))
