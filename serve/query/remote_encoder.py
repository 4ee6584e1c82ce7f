"""Query encoding in another deployment, which batches the queries of several replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from waygraph.core.errors import InvalidInput, Overloaded, ServiceError, WaygraphError
from waygraph.serve.query.query_encoder import EncodedQuery
from waygraph.serve.telemetry.metrics import Metrics

#: The answer of another process to one query: errors are returned, since Ray wraps raised ones.
RemoteAnswer = EncodedQuery | WaygraphError


class RemoteQueryEncoder:
    """Sends queries to a deployment that encodes.

    Parameters
    ----------
    call
        Sends one query, or with None waits until the encoder is loaded; the answer to that is None, or the error.
    max_waiting
        Queries that may be in progress; further ones are refused with `Overloaded`.
    metrics
        Counts refused queries.

    Attributes
    ----------
    waiting
        See `AsyncQueryEncoder`.
    """

    def __init__(
        self, call: Callable[[str | None], Awaitable[RemoteAnswer | None]], *, max_waiting: int, metrics: Metrics
    ) -> None:
        self._call = call
        self._max_waiting = max_waiting
        self._metrics = metrics
        self._unavailable: WaygraphError | None = ServiceError("The encoder is starting.", hint="Try again soon.")
        self._has_failed = False
        self._starting: asyncio.Task[None] | None = None
        self.waiting = 0

    @property
    def unavailable(self) -> WaygraphError | None:
        """See `AsyncQueryEncoder`."""
        return self._unavailable

    @property
    def has_failed(self) -> bool:
        """See `AsyncQueryEncoder`."""
        return self._has_failed

    def start(self) -> None:
        """Wait in the background until the encoder is loaded."""
        self._starting = asyncio.create_task(self._wait_until_loaded())

    async def _wait_until_loaded(self) -> None:
        answer = await self._call(None)
        self._unavailable = answer if isinstance(answer, WaygraphError) else None
        self._has_failed = self._unavailable is not None

    async def encode(self, text: str) -> EncodedQuery:
        """Encode one query, see `AsyncQueryEncoder.encode`."""
        if self.waiting >= self._max_waiting:
            self._metrics.count_refused("encode")
            raise Overloaded(f"{self.waiting} queries are waiting already.", hint="Send it again a little later.")
        self.waiting += 1
        try:
            answer = await self._call(text)
        finally:
            self.waiting -= 1
        if isinstance(answer, EncodedQuery):
            return answer
        raise answer or InvalidInput("The query is empty.")

    def close(self) -> None:
        """Stop waiting for the encoder to load."""
        if self._starting is not None:
            self._starting.cancel()
