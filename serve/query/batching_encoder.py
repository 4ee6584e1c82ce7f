"""Query encoding in a thread of this process, in batches of the queries that arrived meanwhile."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from waygraph.core.errors import InvalidInput, WaygraphError
from waygraph.serve.query.caller_queue import CallerQueue, overloaded
from waygraph.serve.query.query_encoder import MAX_BATCH, EncodedQuery, QueryEncoder
from waygraph.serve.telemetry.metrics import Metrics

log = logging.getLogger("ray.serve.waygraph")


class BatchingQueryEncoder:
    """Encodes in one thread; each batch has the queries that arrived while the batch before was encoded.

    A single query does not wait for others, and under load each costs a fraction. Use it on one event loop.

    Parameters
    ----------
    encoder
        Loaded by `start`, or by the first query.
    max_waiting
        Different queries that may wait; callers take turns, and further queries are refused with `Overloaded`.
    metrics
        Counts refused queries and batch sizes.
    """

    def __init__(self, encoder: QueryEncoder, *, max_waiting: int, metrics: Metrics) -> None:
        self._encoder = encoder
        self._metrics = metrics
        #: By text, so that callers with the same query share one result.
        self._waiting: dict[str, list[asyncio.Future[EncodedQuery]]] = {}
        #: The waiting texts.
        self._queue: CallerQueue[str] = CallerQueue(max_waiting)
        self._encoding = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encode")

    @property
    def unavailable(self) -> WaygraphError | None:
        """See `AsyncQueryEncoder`."""
        return self._encoder.unavailable

    @property
    def has_failed(self) -> bool:
        """See `AsyncQueryEncoder`."""
        return self._encoder.has_failed

    @property
    def waiting(self) -> int:
        """See `AsyncQueryEncoder`."""
        return self._encoding + len(self._waiting)

    def start(self) -> None:
        """Load the encoder in the background."""

        def load() -> None:
            try:
                self._encoder.load()
            except WaygraphError as error:
                log.error("the encoder cannot be loaded: %s", error)  # noqa: TRY400 - expected; /readyz reports it

        self._thread.submit(load)

    async def encode(self, text: str) -> EncodedQuery:
        """Encode one query, see `AsyncQueryEncoder.encode`."""
        if text not in self._waiting:
            self._add_to_queue(text)
        future: asyncio.Future[EncodedQuery] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(text, []).append(future)
        self._start_batch()
        try:
            return await future
        finally:
            if future.cancelled() and future in (waiting := self._waiting.get(text, [])):
                waiting.remove(future)
                if not waiting:  # no caller is left for this text
                    del self._waiting[text]
                    self._queue.remove(text)

    def _add_to_queue(self, text: str) -> None:
        displaced = self._queue.add(text)
        if displaced is None:
            return
        self._metrics.count_refused("encode")
        error = overloaded(len(self._queue))
        if displaced == text:
            raise error
        for future in self._waiting.pop(displaced):
            if not future.done():
                future.set_exception(error)

    def _start_batch(self) -> None:
        """Encode the first waiting queries, unless a batch is being encoded."""
        if self._encoding or not self._waiting:
            return
        texts = [self._queue.pop() for _ in range(min(MAX_BATCH, len(self._queue)))]
        batch = {text: self._waiting.pop(text) for text in texts}
        self._encoding = len(batch)
        self._metrics.observe_batch(len(batch))
        results = asyncio.get_running_loop().run_in_executor(self._thread, self._encoder.encode_each, list(batch))
        results.add_done_callback(partial(self._finish_batch, batch))

    def _finish_batch(
        self,
        batch: dict[str, list[asyncio.Future[EncodedQuery]]],
        results: asyncio.Future[list[EncodedQuery | InvalidInput]],
    ) -> None:
        """Pass the results to the callers that still wait, and start the next batch."""
        self._encoding = 0
        error = asyncio.CancelledError() if results.cancelled() else results.exception()
        for index, futures in enumerate(batch.values()):
            for future in futures:
                if future.done():
                    continue
                result = error or results.result()[index]
                if isinstance(result, BaseException):
                    future.set_exception(result)
                else:
                    future.set_result(result)
        self._start_batch()

    def close(self) -> None:
        """Cancel the waiting callers and end the thread, which finishes its batch first."""
        for futures in self._waiting.values():
            for future in futures:
                future.cancel()
        self._waiting.clear()
        self._thread.shutdown(cancel_futures=True)
