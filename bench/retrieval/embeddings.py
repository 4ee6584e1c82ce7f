"""Cache of text embeddings: one file per model, so that a second run takes seconds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waygraph.core.settings import Settings
from waygraph.pipeline.encode.text.encoder import PAGE_ADAPTER, QUERY_ADAPTER, TextEncoder, has_adapters
from waygraph.pipeline.encode.text.sentence_model import SentenceModel
from waygraph.pipeline.encode.text.weights import find_weights

#: Texts after which the file is written again: an interrupted run loses little.
_SAVE_EVERY = 2_000


class RememberedModel:
    """A `SentenceModel` whose vectors are kept in `file` (NumPy archive: hashes of texts, vectors).

    `file` must be named after everything that vectors depend on.
    """

    def __init__(self, model: SentenceModel, file: Path) -> None:
        self._model = model
        self._file = file
        self._known: dict[str, NDArray[np.float32]] = {}
        self._unsaved = 0
        self.dim = model.dim
        if file.exists():
            with np.load(file, allow_pickle=False) as kept:
                self._known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `SentenceModel.embed`."""
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        new = sorted({text for text, key in zip(texts, keys, strict=True) if key not in self._known})
        for start in range(0, len(new), _SAVE_EVERY):
            part = new[start : start + _SAVE_EVERY]
            for text, vector in zip(part, self._model.embed_uncached(part), strict=True):
                self._known[hashlib.sha256(text.encode()).hexdigest()] = vector
            self._unsaved += len(part)
            if self._unsaved >= _SAVE_EVERY:
                self.save()
        return np.stack([self._known[key] for key in keys]) if keys else np.empty((0, self.dim), np.float32)

    embed_uncached = embed

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """See `SentenceModel.token_counts`."""
        return self._model.token_counts(texts)

    def save(self) -> None:
        """Write what is new."""
        if not self._unsaved:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(".new.npz")
        np.savez(beside, texts=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
        beside.replace(self._file)
        self._unsaved = 0


@dataclass(frozen=True)
class RememberingEncoder:
    """A text encoder whose vectors of pages are kept on disk, with adapters and without.

    Attributes
    ----------
    text
        The encoder as it is used.
    plain
        The encoder without adapters, for pages and queries; `text` if it has none.
    models
        The models that keep their vectors.
    """

    text: TextEncoder
    plain: TextEncoder
    models: tuple[RememberedModel, ...]

    def save(self) -> None:
        """Write what is new."""
        for model in self.models:
            model.save()


def identity(text: TextEncoder) -> dict[str, str | None]:
    """Return what decides vectors of pages and of queries, for files of results."""
    adapted = has_adapters(text.weights, text.name)
    return {"encoder": text.fingerprint, "query adapter": _digest(QUERY_ADAPTER) if adapted else None}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def remembering_encoder(name: str, folder: Path, other: Path | None = None) -> RememberingEncoder:
    """Return `text` or `text-large`, which keeps its vectors below `folder`.

    `text` runs the published model unless `other` names weights; `text-large` also what WAYGRAPH_ENCODE__WEIGHTS names.
    """
    weights = find_weights(other or (Settings().encode.weights if name != "text" else None), name)
    kept = f"{weights.model_sha256[:16]}-{weights.tokenizer_sha256[:16]}-float32"
    loaded = SentenceModel.load(weights, batch_size=16, threads=0)
    # The models remember on disk, and are otherwise the same.
    model: Any = RememberedModel(loaded, folder / "embeddings" / f"{kept}.npz")
    plain = TextEncoder(model, weights, name)
    if not has_adapters(weights, name):
        return RememberingEncoder(plain, plain, (model,))
    file = folder / "embeddings" / f"{kept}-{_digest(PAGE_ADAPTER)}.npz"
    pages: Any = RememberedModel(loaded.with_adapter(PAGE_ADAPTER), file)
    queries = loaded.with_adapter(QUERY_ADAPTER)
    text = TextEncoder(model, weights, name, page_model=pages, query_model=queries)
    return RememberingEncoder(text, plain, (model, pages))
