"""The vision encoder: input pages, batches, recipe and fingerprint around any multi-vector model."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from waygraph.core.errors import EncodingFailed, InvalidInput
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Observation, SegmentCounts
from waygraph.index.vectors.multivector import EncodedPage, MultiVector
from waygraph.pipeline.encode.protocol import Reads, Screenshots, SiteContext
from waygraph.pipeline.encode.queries import SHORTER, cleaned_query, refuse_longer
from waygraph.pipeline.encode.runtime.throughput import OutOfMemoryBackoff
from waygraph.pipeline.encode.vision.pages import RECIPE, Tile, joined, read_page, text_page

log = logging.getLogger(__name__)

#: Maximal number of values of a multi-vector in a vector database.
MAX_VALUES = 2**20 - 1
#: Longer queries are refused, since models truncate silently.
MAX_QUERY_CHARACTERS = 4_000


class Model(Protocol):
    """A late-interaction model. Each method returns one matrix of unit vectors per input, float32 of shape (n, dim)."""

    @property
    def name(self) -> str:
        """Name, as used on the command line."""
        ...

    @property
    def dim(self) -> int:
        """Number of columns of every matrix."""
        ...

    @property
    def reads_images(self) -> bool:
        """Whether the model reads images. Otherwise states are encoded by their text."""
        ...

    @property
    def recipe(self) -> dict[str, Any]:
        """What vectors depend on: revision, precision, pixel budget, pooling, prompts."""
        ...

    def images(self, images: Sequence[Image.Image]) -> list[NDArray[np.float32]]:
        """Encode screenshots."""
        ...

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Encode texts of states."""
        ...

    def queries(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Encode queries."""
        ...

    def query_tokens(self, text: str) -> tuple[int, int]:
        """Return the number of tokens of a query with its prompt, and the maximum that the model reads."""
        ...

    def truncated_passages(self, texts: Sequence[str]) -> int:
        """Return how many of these texts the model would truncate."""
        ...


class VisionEncoder:
    """An encoder around a model that pads and prepares batches by itself. Calls are serialised.

    Parameters
    ----------
    model
        Computes vectors.
    settings
        Batch size and threads.
    screenshots
        Screenshots of states. Not needed for queries.
    """

    needs_whole_site = False
    overlaps_calls = False

    def __init__(self, model: Model, settings: EncodeSettings, screenshots: Screenshots | None) -> None:
        self.model = model
        self.name = model.name
        self.reads: Reads = "screenshot" if model.reads_images else "text"
        self._screenshots = screenshots
        self._lock = threading.Lock()
        self._warned_of_truncation = False
        self._threads = ThreadPoolExecutor(settings.threads or len(os.sched_getaffinity(0)))
        size = min(settings.batch_size, 16)
        self._images = OutOfMemoryBackoff[Tile](self._see, size=size)
        self._passages = OutOfMemoryBackoff[str](self._read, size=size)
        self._queries = OutOfMemoryBackoff[str](model.queries, size=settings.batch_size)

    @property
    def dim(self) -> int:
        """Number of columns of every multi-vector."""
        return self.model.dim

    @property
    def recipe(self) -> dict[str, Any]:
        """Everything that vectors depend on, as JSON. Stored in the manifest of every version."""
        return {**self.model.recipe, "pages": RECIPE, "dim": self.dim}

    @property
    def fingerprint(self) -> str:
        """The kind of encoder and 16 hex digits of the recipe's hash."""
        digest = hashlib.sha256(json.dumps(self.recipe, sort_keys=True).encode()).hexdigest()
        return f"{self.name.partition(':')[0]}-{digest[:16]}"

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:  # noqa: ARG002 - states need no context
        """Return the recipe, for the manifest. Nothing of the site is needed."""
        return {"recipe": self.recipe}

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:  # noqa: ARG002
        """Encode states, in order. See `waygraph.pipeline.encode.vision.pages` for tall and missing screenshots.

        Parameters
        ----------
        observations
            States to encode.
        context
            The result of `prepare_site`.

        Returns
        -------
        list[EncodedPage]
            One per state, in order.

        Raises
        ------
        BadImage, NotFound, StoreError
            If a screenshot cannot be read.
        EncodingFailed
            If one page does not fit into memory, or its vectors are not finite or too many for an index.
        """
        pages = [read_page(o, self._screenshots) if self.model.reads_images else text_page(o) for o in observations]
        with self._lock:
            of_images = iter(self._images.run([tile for page in pages for tile in page.tiles]))
            of_texts = iter(self._passages.run([page.text for page in pages if not page.tiles]))
        encoded = []
        for page, observation in zip(pages, observations, strict=True):
            parts = [next(of_images) for _ in page.tiles] or [next(of_texts)]
            encoded.append(joined([(part, [page.label or "screenshot"] * len(part)) for part in parts]))
            if encoded[-1].vectors.size > MAX_VALUES:
                raise EncodingFailed(
                    f"{observation.url} has {len(encoded[-1].vectors)} vectors, more than an index takes "
                    f"({MAX_VALUES // self.dim}).",
                    hint="Use a smaller viewport, or an encoder of fewer dimensions.",
                )
        return encoded

    def encode_query(self, text: str) -> MultiVector:
        """Encode a query as float32 of shape (n, dim), rows of unit length."""
        return self.encode_queries([text])[0]

    def encode_texts(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode short texts, see `encode_queries`."""
        return self.encode_queries(texts)

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode several queries in one batch, see `encode_query`.

        Parameters
        ----------
        texts
            Queries.

        Returns
        -------
        list[MultiVector]
            One per query.

        Raises
        ------
        InvalidInput
            If a query is empty, is not valid text, or has more than 4,000 characters or more tokens than the model
            reads.
        """
        queries = [cleaned_query(text) for text in texts]
        if (longest := max(map(len, queries), default=0)) > MAX_QUERY_CHARACTERS:
            raise InvalidInput(
                f"The query has {longest} characters; the limit is {MAX_QUERY_CHARACTERS}.", hint=SHORTER
            )
        with self._lock:
            for query in queries:
                refuse_longer(*self.model.query_tokens(query))
            return self._queries.run(queries)

    def _read(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        if not self._warned_of_truncation and (cut := self.model.truncated_passages(texts)):
            self._warned_of_truncation = True
            log.warning(
                "encode/cut_text %s: %d of %d texts are truncated; later truncations are not logged",
                self.name,
                cut,
                len(texts),
            )
        return self.model.passages(texts)

    def _see(self, tiles: Sequence[Tile]) -> list[NDArray[np.float32]]:
        return self.model.images(list(self._threads.map(Tile.pixels, tiles)))
