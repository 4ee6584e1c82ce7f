"""Creation of vector indexes for versions of maps, by the engine that the settings select."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from waygraph.core.errors import InvalidInput
from waygraph.core.optional import check_torch
from waygraph.core.settings import VectorSettings
from waygraph.index.vectors.protocol import MapKey, VectorIndex

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

#: Search threads of each embedded index. By default each starts eight, which is eight hundred with a hundred open maps.
SEARCH_THREADS = 2


class VectorIndexFactory:
    """Factory of empty indexes. A connection to a server is opened once and shared. Thread-safe.

    Parameters
    ----------
    settings
        Engine, storage and server.

    Raises
    ------
    InvalidInput
        If the settings contradict each other, or the URL of the server is not valid.
    EnvironmentMissing
        If the engine needs torch, which is not installed.
    """

    def __init__(self, settings: VectorSettings) -> None:
        if (settings.engine == "qdrant") != bool(settings.url):
            raise InvalidInput(
                f"The engine is '{settings.engine}', the URL of a Qdrant server is '{settings.url}'.",
                hint="Set WAYGRAPH_VECTORS__URL for the engine 'qdrant', and for no other.",
            )
        if settings.url:
            from waygraph.index.vectors.server import check_url  # noqa: PLC0415 - imports slowly

            check_url(settings.url, api_key=settings.api_key.get_secret_value(), key_over_http=settings.key_over_http)
        if settings.engine == "packed":
            check_torch("The engine 'packed'")
        self._settings = settings
        self._lock = threading.Lock()
        self._connected = False

    def create(self, dim: int, key: MapKey) -> VectorIndex:
        """Create the index of one version of a map. On a server it may be filled already.

        Parameters
        ----------
        dim
            Number of columns of every multi-vector.
        key
            Key of the version's vectors.

        Returns
        -------
        VectorIndex
            The index.

        Raises
        ------
        ServiceError
            If the server cannot be reached.
        """
        # Engines are imported on first use, since each of them imports slowly.
        if self._settings.engine == "packed":
            from waygraph.index.vectors.packed import PackedIndex  # noqa: PLC0415

            return PackedIndex(dim, dtype=self._settings.dtype, device=self._settings.device)
        if self._settings.engine == "qdrant":
            from waygraph.index.vectors.server import QdrantClientIndex  # noqa: PLC0415

            with self._lock:
                client = self._client
            return QdrantClientIndex(client, dim, key, collection=self._settings.collection)
        from waygraph.index.vectors.edge import EdgeIndex  # noqa: PLC0415
        from waygraph.index.vectors.options import IndexOptions  # noqa: PLC0415

        quantization = self._settings.quantization or None
        options = IndexOptions(
            storage=self._settings.storage, quantization=quantization, first_stage="codes" if quantization else None
        )
        return EdgeIndex(dim, options=options, search_threads=SEARCH_THREADS)

    def drop(self, keys: Sequence[MapKey]) -> None:
        """Delete the vectors of versions from the server. Embedded engines keep none beyond their process.

        Parameters
        ----------
        keys
            Keys of the versions' vectors.

        Raises
        ------
        ServiceError
            If the server cannot be reached.
        """
        if self._settings.engine != "qdrant" or not keys:
            return
        from waygraph.index.vectors.collection import drop_maps  # noqa: PLC0415 - imports slowly

        with self._lock:
            client = self._client
        drop_maps(client, self._settings.collection, keys)

    def close(self) -> None:
        """Disconnect. Indexes on a server cannot be searched afterwards. Closing twice is allowed."""
        with self._lock:
            if self._connected:
                self._client.close()

    @cached_property
    def _client(self) -> QdrantClient:
        from waygraph.index.vectors.server import connect  # noqa: PLC0415

        settings = self._settings
        client = connect(
            settings.url,
            api_key=settings.api_key.get_secret_value(),
            grpc_port=settings.grpc_port,
            timeout_s=settings.timeout_seconds,
            key_over_http=settings.key_over_http,
        )
        self._connected = True
        return client
