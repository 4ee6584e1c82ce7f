"""How does any multi-vector model become an encoder? What all of them share: pages, batches, recipe, fingerprint."""

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

from index.graph import Observation, SegmentCounts
from index.vectors.multivector import EncodedPage, MultiVector
from pipeline.encode.pages import RECIPE, Tile, joined, read_page, text_page
from pipeline.encode.protocol import Reads, Screenshots, SiteContext
from pipeline.encode.questions import SHORTER, cleaned_question, refuse_longer
from pipeline.encode.throughput import Halving
from waygraph.errors import EncodingFailed, InvalidInput
from waygraph.settings import EncodeSettings

log = logging.getLogger(__name__)

#: Values of a multi-vector that a vector database takes.
MAX_VALUES = 2**20 - 1
#: Longer questions are refused: what a model cuts off would be missing without a sign.
MAX_QUESTION_CHARACTERS = 4_000


class Model(Protocol):
    """A late-interaction model: batches in, one matrix of unit vectors for each member out, float32 (n, dim)."""

    @property
    def name(self) -> str:
        """As used on the command line."""
        ...

    @property
    def dim(self) -> int:
        """Columns of every matrix."""
        ...

    @property
    def sees(self) -> bool:
        """Whether it takes images; else states are encoded by their text."""
        ...

    @property
    def recipe(self) -> dict[str, Any]:
        """What its vectors depend on: revision, precision, pixel budget, pooling, prompts."""
        ...

    def images(self, images: Sequence[Image.Image]) -> list[NDArray[np.float32]]:
        """Encode pages by what they look like."""
        ...

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Encode pages by what they say."""
        ...

    def questions(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Encode questions."""
        ...

    def question_tokens(self, text: str) -> tuple[int, int]:
        """Tokens of a question with what is put around it, and how many of them are read at most."""
        ...

    def cut_passages(self, texts: Sequence[str]) -> int:
        """How many of these texts are longer than what is read of them."""
        ...


class SeeingEncoder:
    """An encoder around a model that pads and prepares batches itself. Calls are serialised."""

    needs_whole_site = False

    def __init__(self, model: Model, settings: EncodeSettings, screenshots: Screenshots | None) -> None:
        self.model = model
        self.name = model.name
        self.reads: Reads = "screenshot" if model.sees else "text"
        self._screenshots = screenshots
        self._lock = threading.Lock()
        self._said_cut = False
        self._threads = ThreadPoolExecutor(settings.threads or len(os.sched_getaffinity(0)))
        size = min(settings.batch_size, 16)
        self._images = Halving[Tile](self._see, size=size)
        self._passages = Halving[str](self._read, size=size)
        self._questions = Halving[str](model.questions, size=settings.batch_size)

    @property
    def dim(self) -> int:
        """Columns of every multi-vector."""
        return self.model.dim

    @property
    def recipe(self) -> dict[str, Any]:
        """Everything that vectors depend on, readable; pinned in the manifest of every version."""
        return {**self.model.recipe, "pages": RECIPE, "dim": self.dim}

    @property
    def fingerprint(self) -> str:
        """The kind of encoder and 16 hex digits over the recipe."""
        digest = hashlib.sha256(json.dumps(self.recipe, sort_keys=True).encode()).hexdigest()
        return f"{self.name.partition(':')[0]}-{digest[:16]}"

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:  # noqa: ARG002 - a page needs no context
        """The recipe, for the manifest; nothing of the site is needed."""
        return {"recipe": self.recipe}

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:  # noqa: ARG002
        """Encode states, in order; see `pipeline.encode.pages` for tall screenshots and missing ones.

        Raises
        ------
        BadImage, NotFound, StoreError
            When a screenshot cannot be read.
        EncodingFailed
            When memory does not suffice for one page, or its vectors are not finite or too many for an index.

        """
        pages = [read_page(o, self._screenshots) if self.model.sees else text_page(o) for o in observations]
        with self._lock:
            seen = iter(self._images.run([tile for page in pages for tile in page.tiles]))
            said = iter(self._passages.run([page.text for page in pages if not page.tiles]))
        encoded = []
        for page, observation in zip(pages, observations, strict=True):
            parts = [next(seen) for _ in page.tiles] or [next(said)]
            encoded.append(joined([(part, [page.label or "screenshot"] * len(part)) for part in parts]))
            if encoded[-1].vectors.size > MAX_VALUES:
                raise EncodingFailed(
                    f"{observation.url} has {len(encoded[-1].vectors)} vectors, more than an index takes "
                    f"({MAX_VALUES // self.dim}).",
                    hint="Use a smaller viewport, or an encoder of fewer dimensions.",
                )
        return encoded

    def encode_query(self, text: str) -> MultiVector:
        """Encode a question: float32 of shape (n, dim), rows of unit length."""
        return self.encode_queries([text])[0]

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode questions that were asked at the same time, see `encode_query`.

        Raises
        ------
        InvalidInput
            When a question is empty, is no text, or has more characters than 4,000 or more tokens than the model reads.

        """
        questions = [cleaned_question(text) for text in texts]
        if (longest := max(map(len, questions), default=0)) > MAX_QUESTION_CHARACTERS:
            raise InvalidInput(
                f"The question has {longest} characters, more than {MAX_QUESTION_CHARACTERS}.", hint=SHORTER
            )
        with self._lock:
            for question in questions:
                refuse_longer(*self.model.question_tokens(question))
            return self._questions.run(questions)

    def _read(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        if not self._said_cut and (cut := self.model.cut_passages(texts)):
            self._said_cut = True
            log.warning(
                "encode/cut_text %s: ends of %d of %d pages are not read; this is said once", self.name, cut, len(texts)
            )
        return self.model.passages(texts)

    def _see(self, tiles: Sequence[Tile]) -> list[NDArray[np.float32]]:
        return self.model.images(list(self._threads.map(Tile.pixels, tiles)))
