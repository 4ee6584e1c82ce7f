"""How does a question become a multi-vector while others ask too? Waiting questions are encoded together."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from index.vectors.multivector import MultiVector
from pipeline.encode.protocol import Encoder
from serve.lru import Lru
from waygraph.errors import InvalidInput, Overloaded, ServiceError, WaygraphError
from waygraph.settings import EncodeSettings

if TYPE_CHECKING:
    from serve.metrics import Metrics  # who asks a store without a service has no Prometheus

log = logging.getLogger("ray.serve.waygraph")

#: Questions encoded at once. Eight cost three times one; beyond this the first waits noticeably for the last.
MAX_TOGETHER = 16


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """A question's multi-vector, float32 of shape (m, dim), and the fingerprint of the encoder that made it."""

    vectors: MultiVector
    fingerprint: str


class QueryEncoder:
    """Loads the encoder on first use, or ahead of it by `load`, and remembers why that failed. Thread-safe."""

    def __init__(self, settings: EncodeSettings) -> None:
        # One short text gains little from a second thread, and where the CPUs are busy the threads wait for each other:
        # with indexing beside it, 13 ms became 500. Beside each other run questions and everything else.
        self._settings = settings.model_copy(update={"threads": settings.threads or 1})
        self._loading = threading.Lock()
        self._encoder: Encoder | None = None
        self._error: WaygraphError | None = None

    @property
    def missing(self) -> WaygraphError | None:
        """Why questions cannot be encoded (yet); `None` when they can."""
        if self._encoder is not None:
            return None
        return self._error or ServiceError(
            f"The encoder '{self._settings.encoder}' is loading.", hint="Try again soon."
        )

    @property
    def failed(self) -> bool:
        """Whether the last try to load failed."""
        return self._encoder is None and self._error is not None

    def load(self) -> Encoder:
        """Load the encoder unless that was done; everybody who asks meanwhile waits for it.

        Raises
        ------
        WaygraphError
            When there is no such encoder, or its weights are missing; the next call tries again.

        """
        with self._loading:
            if self._encoder is None:
                from pipeline.encode.registry import create_encoder  # noqa: PLC0415 - imports torch

                try:
                    self._encoder = create_encoder(self._settings)
                except WaygraphError as error:
                    self._error = error
                    raise
                self._error = None
            return self._encoder

    def encode(self, text: str) -> EncodedQuestion:
        """Encode one question."""
        return self.encode_together([text])[0]

    def encode_together(self, texts: Sequence[str]) -> list[EncodedQuestion]:
        """Encode questions that were asked at the same time."""
        encoder = self.load()
        return [EncodedQuestion(vectors, encoder.fingerprint) for vectors in encoder.encode_queries(texts)]

    def encode_each(self, texts: Sequence[str]) -> list[EncodedQuestion | InvalidInput]:
        """Like `encode_together`; a question that cannot be encoded has its error, and spoils no other."""
        try:
            return list(self.encode_together(texts))
        except InvalidInput as error:
            return [error] if len(texts) == 1 else [answer for text in texts for answer in self.encode_each([text])]


class Encoding(Protocol):
    """Encodes questions for callers on an event loop, in this process or elsewhere."""

    @property
    def missing(self) -> WaygraphError | None:
        """Why questions cannot be encoded (yet); `None` when they can."""
        ...

    @property
    def failed(self) -> bool:
        """Whether waiting does not help."""
        ...

    @property
    def waiting(self) -> int:
        """Questions that wait to be encoded, or are being encoded."""
        ...

    def start(self) -> None:
        """Get ready in the background."""
        ...

    async def encode(self, text: str) -> EncodedQuestion:
        """Encode one question; who is cancelled takes nobody else along.

        Raises
        ------
        Overloaded
            When too many questions wait already.

        """
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class EncodingHere:
    """Encodes in one thread of this process, taking along what came while the questions before were encoded.

    Alone, a question waits for nothing; in a crowd, each costs a fraction. Use it on one event loop.

    Parameters
    ----------
    encoder : loaded when it is first needed.
    max_waiting : questions that may wait; further ones are refused.

    """

    def __init__(self, encoder: QueryEncoder, *, max_waiting: int, metrics: Metrics) -> None:
        self._encoder = encoder
        self._max_waiting = max_waiting
        self._metrics = metrics
        # By text, so that who asks the same at the same time shares an answer.
        self._waiting: dict[str, list[asyncio.Future[EncodedQuestion]]] = {}
        self._encoding = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encode")

    @property
    def missing(self) -> WaygraphError | None:
        """See `Encoding`."""
        return self._encoder.missing

    @property
    def failed(self) -> bool:
        """See `Encoding`."""
        return self._encoder.failed

    @property
    def waiting(self) -> int:
        """See `Encoding`."""
        return self._encoding + len(self._waiting)

    def start(self) -> None:
        """Load the encoder in the background."""

        def load() -> None:
            try:
                self._encoder.load()
            except WaygraphError as error:
                log.error("the encoder cannot be loaded: %s", error)  # noqa: TRY400 - expected; /readyz says it too

        self._thread.submit(load)

    async def encode(self, text: str) -> EncodedQuestion:
        """See `Encoding`."""
        if len(self._waiting) >= self._max_waiting and text not in self._waiting:
            self._metrics.refused("encode")
            raise Overloaded(
                f"{len(self._waiting)} questions are waiting already.", hint="Send it again a little later."
            )
        mine: asyncio.Future[EncodedQuestion] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(text, []).append(mine)
        self._encode_next()
        try:
            return await mine
        finally:
            if mine.cancelled() and mine in (others := self._waiting.get(text, [])):
                others.remove(mine)
                if not others:
                    del self._waiting[text]  # nobody wants to know any more

    def _encode_next(self) -> None:
        """Start with those who wait, unless the ones before are still at it."""
        if self._encoding or not self._waiting:
            return
        asked = {text: self._waiting.pop(text) for text in list(self._waiting)[:MAX_TOGETHER]}
        self._encoding = len(asked)
        self._metrics.encoded(len(asked))
        found = asyncio.get_running_loop().run_in_executor(self._thread, self._encoder.encode_each, list(asked))
        found.add_done_callback(partial(self._tell, asked))

    def _tell(
        self,
        asked: dict[str, list[asyncio.Future[EncodedQuestion]]],
        found: asyncio.Future[list[EncodedQuestion | InvalidInput]],
    ) -> None:
        """Give each of those who asked, and still want to know, the answer or the error."""
        self._encoding = 0
        error = asyncio.CancelledError() if found.cancelled() else found.exception()
        for number, futures in enumerate(asked.values()):
            for future in futures:
                if future.done():
                    continue
                answer = error or found.result()[number]
                if isinstance(answer, BaseException):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._encode_next()

    def close(self) -> None:
        """End the thread; what it is at is finished first, and who waits is told that nothing comes any more."""
        for futures in self._waiting.values():
            for future in futures:
                future.cancel()
        self._waiting.clear()
        self._thread.shutdown(cancel_futures=True)


#: What another process answers to a question: vectors and fingerprint, or which error it is and what it says.
RemoteAnswer = EncodedQuestion | WaygraphError


class EncodingElsewhere:
    """Asks another deployment, which encodes for several replicas together.

    Parameters
    ----------
    ask : sends one question; `None` asks only whether the encoder is loaded.
    max_waiting : questions that may be under way; further ones are refused.

    """

    def __init__(
        self, ask: Callable[[str | None], Awaitable[RemoteAnswer | None]], *, max_waiting: int, metrics: Metrics
    ) -> None:
        self._ask = ask
        self._max_waiting = max_waiting
        self._metrics = metrics
        self._missing: WaygraphError | None = ServiceError("The encoder is starting.", hint="Try again soon.")
        self._failed = False
        self._starting: asyncio.Task[None] | None = None
        self.waiting = 0
        """See `Encoding`."""

    @property
    def missing(self) -> WaygraphError | None:
        """See `Encoding`."""
        return self._missing

    @property
    def failed(self) -> bool:
        """See `Encoding`."""
        return self._failed

    def start(self) -> None:
        """Wait in the background until the encoder is loaded."""
        self._starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        answer = await self._ask(None)
        self._missing = answer if isinstance(answer, WaygraphError) else None
        self._failed = self._missing is not None

    async def encode(self, text: str) -> EncodedQuestion:
        """See `Encoding`."""
        if self.waiting >= self._max_waiting:
            self._metrics.refused("encode")
            raise Overloaded(f"{self.waiting} questions are waiting already.", hint="Send it again a little later.")
        self.waiting += 1
        try:
            answer = await self._ask(text)
        finally:
            self.waiting -= 1
        if isinstance(answer, EncodedQuestion):
            return answer
        raise answer or InvalidInput("The question is empty.")

    def close(self) -> None:
        """Stop waiting for it."""
        if self._starting is not None:
            self._starting.cancel()


class Remembered:
    """Answers what was asked before without encoding it again. The encoder of a process never changes.

    Parameters
    ----------
    encoding : encodes what is new.
    most_bytes : of the vectors that are remembered.

    """

    def __init__(self, encoding: Encoding, most_bytes: int, metrics: Metrics) -> None:
        self._encoding = encoding
        self._metrics = metrics
        self.known: Lru[str, EncodedQuestion] = Lru(most_bytes)

    async def encode(self, text: str) -> EncodedQuestion:
        """See `Encoding.encode`. Equal questions differ in white space only."""
        question = " ".join(text.split())
        found = self.known.get(question)
        self._metrics.looked_up("question", hit=found is not None)
        if found is None:
            with self._metrics.stage("encode"):
                found = await self._encoding.encode(question)
            self.known.put(question, found, found.vectors.nbytes + 4 * len(question))
        return found
