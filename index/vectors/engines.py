"""Which engine searches the maps that are open? Settings become what makes an index for each version."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

from index.vectors.protocol import MapKey, VectorIndex
from waygraph.errors import InvalidInput
from waygraph.settings import VectorSettings

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

#: Of each embedded index. By itself every one starts eight, which with a hundred maps open are eight hundred.
SEARCH_THREADS = 2


class Engines:
    """Makes empty indexes as `VectorSettings` say; a connection to a server is opened once and shared. Thread-safe.

    Raises
    ------
    InvalidInput
        When the settings contradict each other.

    """

    def __init__(self, settings: VectorSettings) -> None:
        if (settings.engine == "qdrant") != bool(settings.url):
            raise InvalidInput(
                f"The engine is '{settings.engine}', the URL of a Qdrant server is '{settings.url}'.",
                hint="Set WAYGRAPH_VECTORS__URL for the engine 'qdrant', and for no other.",
            )
        self._settings = settings
        self._lock = threading.Lock()
        self._connected = False

    def make(self, dim: int, key: MapKey) -> VectorIndex:
        """An index for one version of a map. A server's may be filled already.

        Raises
        ------
        ServiceError
            When the server cannot be reached.

        """
        # Engines are imported when they are needed: each takes longer than most programs want to wait.
        if self._settings.engine == "packed":
            from index.vectors.packed import PackedIndex  # noqa: PLC0415

            return PackedIndex(dim, dtype=self._settings.dtype, device=self._settings.device)
        if self._settings.engine == "qdrant":
            from index.vectors.server import QdrantClientIndex  # noqa: PLC0415

            with self._lock:
                client = self._client
            return QdrantClientIndex(client, dim, key, collection=self._settings.collection)
        from index.vectors.edge import EdgeIndex  # noqa: PLC0415
        from index.vectors.options import IndexOptions  # noqa: PLC0415

        quantization = self._settings.quantization or None
        options = IndexOptions(
            storage=self._settings.storage, quantization=quantization, first_stage="codes" if quantization else None
        )
        return EdgeIndex(dim, options=options, search_threads=SEARCH_THREADS)

    def close(self) -> None:
        """Disconnect. Indexes on a server cannot be searched afterwards. Closing twice is allowed."""
        with self._lock:
            if self._connected:
                self._client.close()

    @cached_property
    def _client(self) -> QdrantClient:
        from index.vectors.server import connect  # noqa: PLC0415

        settings = self._settings
        client = connect(
            settings.url,
            api_key=settings.api_key.get_secret_value(),
            grpc_port=settings.grpc_port,
            timeout_s=settings.timeout_seconds,
        )
        self._connected = True
        return client
