"""The query encoder of one process: loads the encoder once and turns queries into multi-vectors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from waygraph.core.errors import InvalidInput, ServiceError, WaygraphError
from waygraph.core.settings import EncodeSettings
from waygraph.index.vectors.multivector import MultiVector
from waygraph.pipeline.encode.protocol import Encoder

#: Most queries in one batch. Eight cost three times as much as one; in larger batches than this the first query
#: noticeably waits for the last.
MAX_BATCH = 16
#: Encoded once after loading: the first query allocates memory, and compiles the layers of some encoders for seconds.
_FIRST_QUERY = "first query"


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as a multi-vector.

    Attributes
    ----------
    vectors
        float32 of shape (m, dim).
    fingerprint
        Fingerprint of the encoder.
    """

    vectors: MultiVector
    fingerprint: str


class QueryEncoder:
    """Loads the encoder on first use or by `load`, and keeps the error if that fails. Thread-safe.

    Parameters
    ----------
    settings
        The encoder and its weights.
    """

    def __init__(self, settings: EncodeSettings) -> None:
        # One short text gains little from a second thread, and on busy CPUs the threads wait for each other: beside a
        # running index job, 13 ms became 500 ms. The other CPUs serve other queries and other work.
        self._settings = settings.model_copy(update={"threads": settings.threads or 1})
        self._loading = threading.Lock()
        self._encoder: Encoder | None = None
        self._error: WaygraphError | None = None

    @property
    def unavailable(self) -> WaygraphError | None:
        """Why queries cannot be encoded yet; None if they can."""
        if self._encoder is not None:
            return None
        return self._error or ServiceError(
            f"The encoder '{self._settings.encoder}' is loading.", hint="Try again soon."
        )

    @property
    def has_failed(self) -> bool:
        """Whether the last attempt to load the encoder failed."""
        return self._encoder is None and self._error is not None

    def load(self) -> Encoder:
        """Load the encoder, unless it is loaded; concurrent callers wait for one load.

        Returns
        -------
        Encoder
            The loaded encoder.

        Raises
        ------
        WaygraphError
            If there is no such encoder, or its weights are missing. The next call tries again.
        """
        with self._loading:
            if self._encoder is None:
                from waygraph.pipeline.encode.registry import create_encoder  # noqa: PLC0415 - imports NumPy

                try:
                    encoder = create_encoder(self._settings)
                    encoder.encode_query(_FIRST_QUERY)
                except WaygraphError as error:
                    self._error = error
                    raise
                self._encoder, self._error = encoder, None
            return self._encoder

    def encode(self, text: str) -> EncodedQuery:
        """Encode one query."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[EncodedQuery]:
        """Encode several queries in one batch."""
        encoder = self.load()
        return [EncodedQuery(vectors, encoder.fingerprint) for vectors in encoder.encode_queries(texts)]

    def encode_each(self, texts: Sequence[str]) -> list[EncodedQuery | InvalidInput]:
        """Encode several queries in one batch, with an error in place of each query that cannot be encoded."""
        try:
            return list(self.encode_batch(texts))
        except InvalidInput as error:
            return [error] if len(texts) == 1 else [result for text in texts for result in self.encode_each([text])]
