"""Which actors a run uses: those of Ray, or processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from waygraph.cluster import ray_cluster
from waygraph.pipeline.jobs.actors.protocol import ActorSystem

#: Object store of a private Ray, for captures and vectors of sites in progress. The rest is spilled to disk.
_OBJECT_STORE_BYTES = 256 * 2**20


@contextmanager
def actor_system() -> Iterator[ActorSystem]:
    """Start the actors of a run, and end them."""
    with ray_cluster(object_store_bytes=_OBJECT_STORE_BYTES) as cluster:
        from waygraph.pipeline.jobs.actors.ray_actors import RayActors  # noqa: PLC0415 - Ray reads its environment

        yield RayActors(cluster.private)
