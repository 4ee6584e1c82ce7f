"""Copies of published vectors on a Qdrant server: deleted when the versions that they belong to are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from waygraph.core.settings import VectorSettings
from waygraph.index.catalog.catalog import map_key
from waygraph.index.store.manifest import Manifest
from waygraph.index.vectors.engines import VectorIndexFactory


@contextmanager
def server_copies(settings: VectorSettings) -> Iterator[Callable[[Sequence[Manifest]], None]]:
    """Connect to the server that the settings name, if any, for the time of the block.

    Parameters
    ----------
    settings
        The engine, and its server.

    Yields
    ------
    Callable[[Sequence[Manifest]], None]
        Deletes the vectors of versions, given their manifests; does nothing for an embedded engine.

    Raises
    ------
    InvalidInput
        If the settings contradict each other.
    ServiceError
        If the server cannot be reached when vectors are to be deleted.
    """
    factory = VectorIndexFactory(settings)
    try:
        yield lambda manifests: factory.drop([map_key(manifest) for manifest in manifests])
    finally:
        factory.close()
