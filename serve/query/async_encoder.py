"""Query encoding for code on an event loop: the protocol, and a cache in front of any implementation."""

from __future__ import annotations

from typing import Protocol

from waygraph.core.errors import WaygraphError
from waygraph.core.lru_cache import LruCache
from waygraph.serve.query.query_encoder import EncodedQuery
from waygraph.serve.telemetry.metrics import Metrics

#: Most bytes of a character of a cached query, for the size of its cache key.
_CHARACTER_BYTES = 4


class AsyncQueryEncoder(Protocol):
    """Encodes queries for callers on an event loop, in this process or in another one."""

    @property
    def unavailable(self) -> WaygraphError | None:
        """Why queries cannot be encoded yet; None if they can."""
        ...

    @property
    def has_failed(self) -> bool:
        """Whether the encoder will not become available by waiting."""
        ...

    @property
    def waiting(self) -> int:
        """Number of queries that wait to be encoded or are being encoded."""
        ...

    def start(self) -> None:
        """Load the encoder in the background."""
        ...

    async def encode(self, text: str) -> EncodedQuery:
        """Encode one query. Cancelling one caller does not cancel others that wait for the same text.

        Parameters
        ----------
        text
            The query.

        Returns
        -------
        EncodedQuery
            The query's vectors.

        Raises
        ------
        Overloaded
            If too many queries are waiting already.
        InvalidInput
            If the query cannot be encoded.
        """
        ...

    def close(self) -> None:
        """Stop the background work."""
        ...


class CachedQueryEncoder:
    """Encodes each query once. Needs no invalidation: the encoder of a process never changes.

    Parameters
    ----------
    encoder
        Encodes the queries that are not cached.
    max_bytes
        Size of the cached vectors.
    metrics
        Times encoding and counts cache look-ups.

    Attributes
    ----------
    cache
        The encoded queries, by text with normalised white space.
    """

    def __init__(self, encoder: AsyncQueryEncoder, max_bytes: int, metrics: Metrics) -> None:
        self._encoder = encoder
        self._metrics = metrics
        self.cache: LruCache[str, EncodedQuery] = LruCache(max_bytes)

    async def encode(self, text: str) -> EncodedQuery:
        """Encode one query, see `AsyncQueryEncoder.encode`. Queries that differ only in white space are equal."""
        query = " ".join(text.split())
        encoded = self.cache.get(query)
        self._metrics.count_lookup("question", hit=encoded is not None)
        if encoded is None:
            with self._metrics.stage("encode"):
                encoded = await self._encoder.encode(query)
            self.cache.put(query, encoded, encoded.vectors.nbytes + _CHARACTER_BYTES * len(query))
        return encoded
