"""Sentence embeddings: all-MiniLM-L6-v2 or another sentence model, on the CPU, with mean or first-token pooling."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from tokenizers import Encoding, Tokenizer

from waygraph.core.errors import WeightsMissing
from waygraph.core.lru_cache import ENTRY_BYTES, LruCache
from waygraph.pipeline.encode.runtime.batching import length_batches
from waygraph.pipeline.encode.text.sentence_recipe import Pooling
from waygraph.pipeline.encode.text.tensors import Tensors
from waygraph.pipeline.encode.text.transformer import Bert, MPNet
from waygraph.pipeline.encode.text.weights import TextWeights

log = logging.getLogger(__name__)

#: Texts whose vectors are cached.
CACHED_TEXTS = 20_000

REPLACE = "Replace the folder with a complete copy of the model."

#: Computes token vectors of shape (texts, tokens, dim) from token ids of shape (texts, tokens) and numbers of tokens.
Forward = Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.float32]]


class SentenceModel:
    """Embed texts as unit vectors.

    The vector of a text depends on the text alone; the batch that it is part of (padding, order of summation) changes
    it by less than 1e-5 per component. Vectors are cached; the least recently used are evicted. Thread-safe.

    Parameters
    ----------
    forward
        Computes token vectors.
    dim
        Size of the vectors.
    tokenizer
        Tokenizer without padding.
    batch_size
        Texts per batch.
    cache_size
        Number of cached vectors (1.5 KB each for 384 dimensions).
    pooling
        How token vectors become one vector.
    """

    def __init__(
        self,
        forward: Forward,
        dim: int,
        tokenizer: Tokenizer,
        *,
        batch_size: int,
        cache_size: int = CACHED_TEXTS,
        pooling: Pooling = "mean",
    ) -> None:
        self._token_vectors = forward
        self._tokenizer = tokenizer
        self._batch_size = batch_size
        # All vectors have the same size.
        self._cache: LruCache[str, NDArray[np.float32]] = LruCache(
            cache_size * (dim * np.dtype(np.float32).itemsize + ENTRY_BYTES)
        )
        self._lock = threading.Lock()
        self._pooling = pooling
        self._warned_of_truncation = False
        self.dim = dim
        self.embedded = 0
        """Number of texts that the model has embedded."""

    @classmethod
    def load(cls, weights: TextWeights, *, batch_size: int, threads: int) -> Self:
        """Load a model from a folder without network access.

        Parameters
        ----------
        weights
            The model's folder and recipe.
        batch_size
            Texts per batch.
        threads
            CPU threads of one call. 0: as many as the process may use.

        Returns
        -------
        Self
            The model.

        Raises
        ------
        WeightsMissing
            If the files cannot be read, or their tensors do not fit the architecture in config.json.
        """
        try:
            forward, dim = _read_model(weights.folder, threads)
            tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
        except WeightsMissing as error:
            raise WeightsMissing(f"{weights.folder}: {error.message}", hint=REPLACE) from error
        except ModuleNotFoundError:
            raise
        except Exception as error:  # three libraries, one of which raises nothing narrower
            raise WeightsMissing(f"{weights.folder} cannot be read: {error}", hint=REPLACE) from error
        tokenizer.enable_truncation(weights.recipe.max_tokens)
        tokenizer.no_padding()
        return cls(forward, dim, tokenizer, batch_size=batch_size, pooling=weights.recipe.pooling)

    def with_adapter(self, file: Path, *, cache_size: int = 0) -> SentenceModel:
        """Return the model with an adapter that was trained for it.

        Parameters
        ----------
        file
            The factors that `Bert.with_adapter` describes, as safetensors.
        cache_size
            Number of cached vectors.

        Returns
        -------
        SentenceModel
            The model with the adapter.

        Raises
        ------
        WeightsMissing
            If the file cannot be read, or does not fit the model.
        """
        hint = "Install waygraph again."
        if not isinstance(self._token_vectors, Bert):
            raise WeightsMissing(f"{file} is an adapter of a BERT, and the model is none.", hint=hint)
        try:
            return self._with_forward(self._token_vectors.with_adapter(Tensors(file)), cache_size)
        except WeightsMissing as error:
            raise WeightsMissing(f"{file}: {error.message}", hint=hint) from error
        except (OSError, SafetensorError, ValueError) as error:
            raise WeightsMissing(f"{file} cannot be read: {error}", hint=hint) from error

    def _with_forward(self, forward: Bert, cache_size: int) -> SentenceModel:
        """Return a model with the tokenizer of this one."""
        return SentenceModel(
            forward,
            self.dim,
            self._tokenizer,
            batch_size=self._batch_size,
            cache_size=cache_size,
            pooling=self._pooling,
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, float32 of shape (len(texts), dim), in the order of `texts`."""
        found = {text: vector for text in texts if (vector := self._cache.get(text)) is not None}
        if new := sorted(set(texts) - found.keys()):
            vectors = self.embed_uncached(new)
            found.update(zip(new, vectors, strict=True))
        with self._lock:
            self.embedded += len(new)
        for text in texts:
            self._cache.put(text, found[text], found[text].nbytes)
        return np.stack([found[text] for text in texts]) if texts else np.empty((0, self.dim), np.float32)

    def embed_uncached(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed like `embed`, without the cache. The first truncation of a text is logged."""
        encodings = self._tokenizer.encode_batch(list(texts))
        if not self._warned_of_truncation and (cut := sum(bool(encoding.overflowing) for encoding in encodings)):
            self._warned_of_truncation = True
            log.warning(
                "encode/cut_text %d of %d texts are truncated; later truncations are not logged", cut, len(texts)
            )
        vectors = np.empty((len(texts), self.dim), np.float32)
        for batch in length_batches([len(e.ids) for e in encodings], self._batch_size):
            vectors[batch] = self._forward([encodings[i] for i in batch])
        return vectors

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text before truncation, special tokens included."""
        return [
            len(encoding.ids) + sum(part.special_tokens_mask.count(0) for part in encoding.overflowing)
            for encoding in self._tokenizer.encode_batch(list(texts))
        ]

    def _forward(self, encodings: Sequence[Encoding]) -> NDArray[np.float32]:
        lengths = np.array([len(encoding.ids) for encoding in encodings], np.int32)
        ids = np.zeros((len(encodings), lengths.max()), np.int64)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
        tokens = self._token_vectors(ids, lengths)
        if self._pooling == "cls":
            pooled = tokens[:, 0]
        else:
            pooled = np.stack([own[:length].mean(0) for own, length in zip(tokens, lengths.tolist(), strict=True)])
        norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        unit: NDArray[np.float32] = pooled / np.maximum(norms, 1e-12)
        return unit.astype(np.float32, copy=False)


def _read_model(folder: Path, threads: int) -> tuple[Forward, int]:
    """Return the forward function of the model and the size of its vectors."""
    config = json.loads((folder / "config.json").read_text())
    for architecture in (Bert, MPNet):
        if (model := architecture.load(folder, config, threads=threads)) is not None:
            return model, model.dim
    # torch and transformers take seconds to import; the published models need neither.
    from waygraph.pipeline.encode.text.other_models import read_any_model  # noqa: PLC0415

    return read_any_model(folder, threads)
