"""How are states searched on a Qdrant server? Connecting, and one map of a collection as a `VectorIndex`."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient

from index.vectors.checks import checked_k, checked_query, ranked_from
from index.vectors.collection import Collection, ServerHit
from index.vectors.protocol import MapKey, ScoredNode
from index.vectors.retries import Retries
from waygraph.errors import InvalidInput

#: One connection carries everything; vectors of one large page are 4 MiB, answers are small.
_GRPC_OPTIONS = {"grpc.max_send_message_length": 64 * 2**20, "grpc.keepalive_time_ms": 30_000}


def connect(url: str, *, api_key: str = "", grpc_port: int = 6334, timeout_s: float = 30.0) -> QdrantClient:
    """Connect to a server: gRPC for points, HTTP for what gRPC is not needed for.

    Parameters
    ----------
    url : `http://host:port` or, encrypted, `https://host:port`; both protocols follow it.
    api_key : sent with every request; not over plain HTTP beyond this machine.
    grpc_port : 0 speaks HTTP alone, for servers behind an HTTP proxy.
    timeout_s : of one request.

    Raises
    ------
    InvalidInput
        When the URL is none, or would send the key in the clear.

    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput(f"'{url}' is not the URL of a Qdrant server.", hint="It looks like http://localhost:6333.")
    if api_key and parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        raise InvalidInput(
            f"The API key would go to {parts.hostname} unencrypted.", hint="Use https:// in WAYGRAPH_VECTORS__URL."
        )
    return QdrantClient(
        url=url,
        port=parts.port or (443 if parts.scheme == "https" else 6333),
        grpc_port=grpc_port,
        prefer_grpc=bool(grpc_port),
        https=parts.scheme == "https",
        api_key=api_key or None,
        timeout=max(1, round(timeout_s)),
        grpc_options=dict(_GRPC_OPTIONS),  # the client adds to what it is given
        # It asks the server at once, and only warns when there is none. Whoever uses the client finds out properly.
        check_compatibility=False,
    )


class QdrantClientIndex:
    """A `VectorIndex` of one site version in a shared Qdrant collection, through `qdrant-client`.

    Every point carries its map's key, every search filters by it: readers never see a mix, not even of two stores.
    Points of a version never change, so that processes may add the same version at the same time. `close` leaves them
    on the server, since other readers may search them; `drop` deletes them.

    Parameters
    ----------
    client : a connected client; it stays the caller's to close.
    dim : number of columns of every multi-vector.
    key : which map the points belong to.
    collection : name of the collection; made when it does not exist.

    """

    def __init__(
        self,
        client: QdrantClient,
        dim: int,
        key: MapKey,
        *,
        collection: str = "waygraph",
        retries: Retries = Retries(),  # noqa: B008 - frozen
    ) -> None:
        self.dim = dim
        self.collection = Collection(client, dim, name=collection, retries=retries)
        self.key = key

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add` and `Collection.upsert`."""
        self.collection.upsert(self.key, items)

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """The k best states, see `VectorIndex.search`; all of them are scored from all of their rows."""
        rows, limit = checked_query(query, self.dim), checked_k(k)

        def fetch(count: int) -> list[tuple[str, float]]:
            hits = self.collection.search(rows, count, [self.key], two_stages=False)
            return [(node_id, score) for _, node_id, score in hits]

        return ranked_from(fetch, limit, len(self))

    def search_maps(
        self, query: NDArray[np.float32], k: int, keys: list[MapKey], *, two_stages: bool
    ) -> list[ServerHit]:
        """The k best states of several maps in this index's collection, see `Collection.search`."""
        return self.collection.search(query, k, keys, two_stages=two_stages)

    def compact(self) -> None:
        """Nothing to do: servers optimize by themselves."""

    def __len__(self) -> int:
        return self.collection.count(self.key)

    def close(self) -> None:
        """Nothing to release: the client is the caller's, and the points may be in use by others."""

    def drop(self) -> None:
        """Delete this version's points from the server, for everyone."""
        self.collection.drop(self.key)
