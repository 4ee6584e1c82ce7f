"""Search on a Qdrant server: the connection, and one map of a shared collection as a `VectorIndex`."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient

from waygraph.core.errors import InvalidInput
from waygraph.index.vectors.collection import QdrantCollection, ServerHit
from waygraph.index.vectors.protocol import MapKey, ScoredNode
from waygraph.index.vectors.retries import ServerRetries
from waygraph.index.vectors.validation import top_k_from_engine, validate_k, validate_query

#: One connection carries all calls; the vectors of one large page take 4 MiB, answers are small.
_GRPC_OPTIONS = {"grpc.max_send_message_length": 64 * 2**20, "grpc.keepalive_time_ms": 30_000}


def check_url(url: str, *, api_key: str = "", key_over_http: bool = False) -> SplitResult:
    """Return the parts of a server's URL, or raise `InvalidInput` if it is none or the key would be sent unencrypted.

    Parameters
    ----------
    url
        `http://host:port` or, encrypted, `https://host:port`.
    api_key
        Key sent with every request; empty: none.
    key_over_http
        Whether the key may be sent over plain HTTP to another machine.

    Returns
    -------
    SplitResult
        The parts.

    Raises
    ------
    InvalidInput
        If the URL is not valid, or the key would be sent unencrypted.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput(f"'{url}' is not the URL of a Qdrant server.", hint="It looks like http://localhost:6333.")
    is_here = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if api_key and parts.scheme == "http" and not is_here and not key_over_http:
        raise InvalidInput(
            f"The API key would be sent to {parts.hostname} unencrypted.",
            hint="Use https:// in WAYGRAPH_VECTORS__URL, or allow it: WAYGRAPH_VECTORS__KEY_OVER_HTTP=true.",
        )
    return parts


def connect(
    url: str, *, api_key: str = "", grpc_port: int = 6334, timeout_s: float = 30.0, key_over_http: bool = False
) -> QdrantClient:
    """Connect to a server: by gRPC for points, by HTTP for everything else.

    Parameters
    ----------
    url
        `http://host:port` or, encrypted, `https://host:port`; the scheme applies to both protocols.
    api_key
        Key sent with every request; not allowed over plain HTTP beyond this machine.
    grpc_port
        Port of gRPC; 0: HTTP alone, for servers behind an HTTP proxy.
    timeout_s
        Timeout of one request, in seconds.
    key_over_http
        Whether the key may be sent over plain HTTP to another machine.

    Returns
    -------
    QdrantClient
        The client; the caller closes it.

    Raises
    ------
    InvalidInput
        If the URL is not valid, or the key would be sent unencrypted.
    """
    parts = check_url(url, api_key=api_key, key_over_http=key_over_http)
    return QdrantClient(
        url=url,
        port=parts.port or (443 if parts.scheme == "https" else 6333),
        grpc_port=grpc_port,
        prefer_grpc=bool(grpc_port),
        https=parts.scheme == "https",
        api_key=api_key or None,
        timeout=max(1, round(timeout_s)),
        grpc_options=dict(_GRPC_OPTIONS),  # the client modifies the dictionary
        # The check would send a request at once and only warn if it fails. The first real call raises an error instead.
        check_compatibility=False,
    )


class QdrantClientIndex:
    """A `VectorIndex` of one site version in a shared Qdrant collection, through `qdrant-client`.

    Every point carries its map's key, and every search filters by it: readers never see a mix of versions, nor of
    stores. The points of a version never change, so several processes may add the same version at the same time.
    `close` leaves them on the server, since other readers may search them; `drop` deletes them.

    Parameters
    ----------
    client
        A connected client; the caller closes it.
    dim
        Number of columns of every multi-vector.
    key
        Key of the map to which the points belong.
    collection
        Name of the collection; created if it does not exist.
    retries
        Retry policy of all calls.
    """

    def __init__(
        self,
        client: QdrantClient,
        dim: int,
        key: MapKey,
        *,
        collection: str = "waygraph",
        retries: ServerRetries = ServerRetries(),  # noqa: B008 - frozen
    ) -> None:
        self.dim = dim
        self.collection = QdrantCollection(client, dim, name=collection, retries=retries)
        self.key = key

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add` and `QdrantCollection.upsert`."""
        self.collection.upsert(self.key, items)

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """Return the top k states, see `VectorIndex.search`; all states are scored from all of their rows."""
        rows, limit = validate_query(query, self.dim), validate_k(k)

        def fetch(count: int) -> list[tuple[str, float]]:
            hits = self.collection.search(rows, count, [self.key], two_stages=False)
            return [(node_id, score) for _, node_id, score in hits]

        return top_k_from_engine(fetch, limit, len(self))

    def search_maps(
        self, query: NDArray[np.float32], k: int, keys: list[MapKey], *, two_stages: bool
    ) -> list[ServerHit]:
        """Return the top k states of several maps in this index's collection, see `QdrantCollection.search`."""
        return self.collection.search(query, k, keys, two_stages=two_stages)

    def compact(self) -> None:
        """Do nothing: servers optimize by themselves."""

    def __len__(self) -> int:
        return self.collection.count(self.key)

    def close(self) -> None:
        """Do nothing: the caller closes the client, and other readers may use the points."""

    def drop(self) -> None:
        """Delete this version's points from the server, for all readers."""
        self.collection.drop(self.key)
