"""How does `jina-v4` turn states and questions into multi-vectors? One unit vector per token, all tokens kept."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from index.graph import Observation, SegmentCounts
from index.vectors.multivector import EncodedPage, MultiVector
from pipeline.encode.compiling import CompiledLayers
from pipeline.encode.devices import compute_device, compute_dtype
from pipeline.encode.jina_v4.checkpoint import Checkpoint, find_checkpoint
from pipeline.encode.jina_v4.inputs import (
    IMAGE_PREFIX,
    IMAGE_SUFFIX,
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    Batch,
    Grid,
    Picture,
    Prompts,
    grid_of,
    image_batch,
    text_batch,
    token_count,
)
from pipeline.encode.jina_v4.model import JinaV4, open_checkpoint
from pipeline.encode.pages import RECIPE, Page, Tile, joined, patch_rows, read_page
from pipeline.encode.protocol import Reads, Screenshots, SiteContext
from pipeline.encode.questions import cleaned_question, refuse_longer
from pipeline.encode.throughput import BatchRunner
from waygraph.errors import BadImage, EncodingFailed
from waygraph.settings import EncodeSettings

log = logging.getLogger(__name__)

#: Longer questions are refused: what was cut off would be missing without a sign.
MAX_QUERY_TOKENS = 2_048
#: A state without a screenshot is encoded by so many tokens of its text at most.
MAX_PASSAGE_TOKENS = 1_024
#: Values of a multi-vector that a vector database takes.
MAX_VALUES = 2**20 - 1
#: Tokens computed at once, unless the settings say otherwise.
GPU_BUDGET, CPU_BUDGET = 16_384, 1_024


class JinaV4Encoder:
    """The reference encoder of screenshots. Calls are serialised: one model, one device."""

    name = "jina-v4"
    needs_whole_site = False
    reads: Reads = "screenshot"

    def __init__(
        self,
        checkpoint: Checkpoint,
        model: JinaV4,
        prompts: Prompts,
        settings: EncodeSettings,
        screenshots: Screenshots | None,
    ) -> None:
        self.checkpoint = checkpoint
        self.model = model
        self.prompts = prompts
        self._merge = checkpoint.pixels.merge
        self._dtype = str(model.projector.weight.dtype).removeprefix("torch.")
        self._screenshots = screenshots
        self._lock = threading.Lock()
        self._said_cut = False
        self.compiled = CompiledLayers(model, wanted=settings.compile)
        budget = settings.token_budget or (GPU_BUDGET if model.device.type == "cuda" else CPU_BUDGET)
        threads = settings.threads or len(os.sched_getaffinity(0))
        self._images = BatchRunner[Tile, Picture](self._prepare, self._see, budget=budget, threads=threads)
        self._texts = BatchRunner[Sequence[int], Sequence[int]](lambda ids: ids, self._read, budget=budget, threads=1)

    @classmethod
    def load(cls, settings: EncodeSettings, screenshots: Screenshots | None = None) -> Self:
        """Find, check and load the checkpoint; its licence is logged.

        Raises
        ------
        WeightsMissing
            When there is none, or anything in it is missing, damaged or left over.
        InvalidInput
            When the device is not there, or the pixel budget does not suit.

        """
        checkpoint = open_checkpoint(find_checkpoint(settings.weights), settings.max_pixels)
        device = compute_device(settings)
        model = JinaV4.load(checkpoint, device=device, dtype=compute_dtype(settings, device))
        return cls(checkpoint, model, Prompts.load(checkpoint), settings, screenshots)

    @property
    def dim(self) -> int:
        """Columns of every multi-vector."""
        return self.model.dim

    @property
    def recipe(self) -> dict[str, Any]:
        """Everything that vectors depend on, readable; pinned in the manifest of every version."""
        pixels = self.checkpoint.pixels
        return {
            "model": "jina-embeddings-v4",
            "revision": self.checkpoint.digest,
            "min_pixels": pixels.min_pixels,
            "max_pixels": pixels.max_pixels,
            "dtype": self._dtype,
            "pooling": "none, all tokens, unit length",
            "prompts": [IMAGE_PREFIX, IMAGE_SUFFIX, QUERY_PREFIX, PASSAGE_PREFIX],
            "pages": RECIPE,
            "dim": self.dim,
        }

    @property
    def fingerprint(self) -> str:
        """`jina-v4-` and 16 hex digits over the recipe."""
        return "jina-v4-" + hashlib.sha256(json.dumps(self.recipe, sort_keys=True).encode()).hexdigest()[:16]

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:  # noqa: ARG002 - a screenshot needs no context
        """The recipe, for the manifest; nothing of the site is needed."""
        return {"recipe": self.recipe}

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:  # noqa: ARG002
        """Encode states, in order, by their screenshots; see `pipeline.encode.pages` for tall ones and missing ones.

        Raises
        ------
        BadImage, NotFound, StoreError
            When a screenshot cannot be read.
        EncodingFailed
            When memory does not suffice for one page, or vectors are not finite.

        """
        pages = [read_page(observation, self._screenshots) for observation in observations]
        parts = [tile for page in pages for tile in page.tiles]
        with self._lock, torch.inference_mode():
            vectors = iter(self._images.run(parts, [self._tokens_of(tile) for tile in parts]))
            texts = [page for page in pages if not page.tiles]
            passages = [self._passage(page) for page in texts]
            spoken = iter(self._texts.run(passages, [len(ids) for ids in passages]))
        encoded = []
        for page in pages:
            if page.tiles:
                encoded.append(joined([(next(vectors), self._rows_of(tile)) for tile in page.tiles]))
            else:
                of_text = next(spoken)
                encoded.append(joined([(of_text, [page.label] * len(of_text))]))
        for observation, page_vectors in zip(observations, encoded, strict=True):
            if page_vectors.vectors.size > MAX_VALUES:
                raise EncodingFailed(
                    f"The screenshot of {observation.url} has {len(page_vectors.vectors)} vectors, more than an index "
                    f"takes ({MAX_VALUES // self.dim}).",
                    hint="Lower WAYGRAPH_ENCODE__MAX_PIXELS.",
                )
        return encoded

    def encode_query(self, text: str) -> MultiVector:
        """Encode a question: float32 of shape (tokens of the question and its prefix, dim), rows of unit length."""
        return self.encode_queries([text])[0]

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode questions that were asked at the same time, see `encode_query`.

        Raises
        ------
        InvalidInput
            When a question is empty, is no text, or has more than 2,048 tokens.

        """
        sequences = []
        for text in texts:
            ids = self.prompts.plain(QUERY_PREFIX + cleaned_question(text))
            refuse_longer(len(ids), MAX_QUERY_TOKENS)
            sequences.append(ids)
        with self._lock, torch.inference_mode():
            return self._texts.run(sequences, [len(ids) for ids in sequences])

    def _tokens_of(self, tile: Tile) -> int:
        return token_count(self._grid_of(tile), self._merge)

    def _grid_of(self, tile: Tile) -> Grid:
        try:
            return grid_of(tile.box.width, tile.box.height, self.checkpoint.pixels)
        except ValueError as error:
            raise BadImage(f"{tile.name} cannot be laid out: {error}.", hint="Use a higher viewport.") from error

    def _prepare(self, tile: Tile) -> Picture:
        grid, patch = self._grid_of(tile), self.checkpoint.pixels.patch
        size = (grid.columns * patch, grid.rows * patch)
        shrunk = tile.pixels().resize(size, Image.Resampling.BICUBIC)
        return Picture(torch.from_numpy(np.array(shrunk)), grid)

    def _see(self, pictures: Sequence[Picture]) -> Tensor:
        return self._run(image_batch(pictures, self.prompts, self.model.backbone))

    def _read(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        return self._run(text_batch(sequences))

    def _run(self, batch: Batch) -> Tensor:
        vectors: Tensor = self.compiled.run(lambda: self.model(batch))
        return vectors

    def _passage(self, page: Page) -> list[int]:
        ids = self.prompts.plain(PASSAGE_PREFIX + page.text)
        if len(ids) > MAX_PASSAGE_TOKENS and not self._said_cut:
            self._said_cut = True
            log.warning("encode/cut_text %s: the end of %s is not read; this is said once", self.name, page.label)
        return ids[:MAX_PASSAGE_TOKENS]

    def _rows_of(self, tile: Tile) -> tuple[str, ...]:
        grid = self._grid_of(tile)
        seen = patch_rows(tile.box, grid.rows // self._merge, grid.columns // self._merge)
        after = token_count(grid, self._merge) - len(seen) - self.prompts.image_start
        return ("screenshot",) * self.prompts.image_start + seen + ("screenshot",) * after
