"""How does a question become a multi-vector while others ask too? One encoder, waiting questions together."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from index.vectors.multivector import MultiVector
from pipeline.encode.protocol import Encoder
from waygraph.errors import ServiceError, WaygraphError
from waygraph.settings import EncodeSettings

#: Questions encoded at once. Eight cost three times one; beyond this the first waits noticeably for the last.
MAX_TOGETHER = 16


@dataclass(slots=True, eq=False)
class _Question:
    text: str
    vectors: MultiVector | None = None
    error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.vectors is not None or self.error is not None


class QueryEncoder:
    """Loads the encoder on first use, or ahead of it by `load`, and remembers why that failed. Thread-safe."""

    def __init__(self, settings: EncodeSettings) -> None:
        # One short text gains little from a second thread, and where the CPUs are busy the threads wait for each other:
        # with indexing beside it, 13 ms became 500. Beside each other run questions and everything else.
        self._settings = settings.model_copy(update={"threads": settings.threads or 1})
        self._loading = threading.Lock()
        self._encoder: Encoder | None = None
        self._error: WaygraphError | None = None
        self._encoding = threading.Lock()
        self._waiting: deque[_Question] = deque()

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

    @property
    def fingerprint(self) -> str:
        """What an index must have been made with."""
        return self.load().fingerprint

    def encode(self, text: str) -> MultiVector:
        """Encode a question: float32 of shape (m, dim).

        Whoever gets to encode takes along the questions that came while the ones before were encoded: alone, a
        question waits for nothing; in a crowd, each costs a fraction.
        """
        encoder = self.load()
        mine = _Question(text)
        self._waiting.append(mine)
        with self._encoding:
            while not mine.done:
                _encode(encoder, self._take())
        if mine.error is not None:
            raise mine.error
        assert mine.vectors is not None  # noqa: S101 - that is what `done` says
        return mine.vectors

    def _take(self) -> list[_Question]:
        # Only the holder of `_encoding` takes, so what is counted is there.
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_TOGETHER))]


def _encode(encoder: Encoder, questions: list[_Question]) -> None:
    try:
        vectors = encoder.encode_queries([question.text for question in questions])
    except BaseException as error:  # noqa: BLE001 - raised again by each of those who asked
        for question in questions:
            question.error = error
        return
    for question, vector in zip(questions, vectors, strict=True):
        question.vectors = vector
