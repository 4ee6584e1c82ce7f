"""Query encoding in another deployment, which batches the queries of several replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from waygraph.core.errors import InvalidInput, ServiceError, WaygraphError
from waygraph.serve.query.caller_queue import CallerSlots
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
    slots
        Queries that may be there at once: callers take turns here, and not there.
    max_waiting
        Queries that may wait here; further ones are refused with `Overloaded`.
    metrics
        Counts refused queries.
    """

    def __init__(
        self,
        call: Callable[[str | None], Awaitable[RemoteAnswer | None]],
        *,
        slots: int,
        max_waiting: int,
        metrics: Metrics,
    ) -> None:
        self._call = call
        self._slots = CallerSlots(slots, max_waiting, lambda: metrics.count_refused("encode"))
        self._unavailable: WaygraphError | None = ServiceError("The encoder is starting.", hint="Try again soon.")
        self._has_failed = False
        self._starting: asyncio.Task[None] | None = None

    @property
    def unavailable(self) -> WaygraphError | None:
        """See `AsyncQueryEncoder`."""
        return self._unavailable

    @property
    def has_failed(self) -> bool:
        """See `AsyncQueryEncoder`."""
        return self._has_failed

    @property
    def waiting(self) -> int:
        """See `AsyncQueryEncoder`."""
        return self._slots.taken + self._slots.waiting

    def start(self) -> None:
        """Wait in the background until the encoder is loaded."""
        self._starting = asyncio.create_task(self._wait_until_loaded())

    async def _wait_until_loaded(self) -> None:
        answer = await self._call(None)
        self._unavailable = answer if isinstance(answer, WaygraphError) else None
        self._has_failed = self._unavailable is not None

    async def encode(self, text: str) -> EncodedQuery:
        """Encode one query, see `AsyncQueryEncoder.encode`."""
        async with self._slots:
            answer = await self._call(text)
        if isinstance(answer, EncodedQuery):
            return answer
        raise answer or InvalidInput("The query is empty.")

    def close(self) -> None:
        """Stop waiting for the encoder to load."""
        if self._starting is not None:
            self._starting.cancel()
