"""The `jina-v4` encoder: one unit vector per token, all tokens kept."""

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

from waygraph.core.errors import BadImage, EncodingFailed
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Observation, SegmentCounts
from waygraph.index.vectors.multivector import EncodedPage, MultiVector
from waygraph.pipeline.encode.protocol import Reads, Screenshots, SiteContext
from waygraph.pipeline.encode.queries import cleaned_query, refuse_longer
from waygraph.pipeline.encode.runtime.compiling import CompiledLayers
from waygraph.pipeline.encode.runtime.devices import compute_device, compute_dtype
from waygraph.pipeline.encode.runtime.throughput import BatchRunner
from waygraph.pipeline.encode.vision.jina_v4.checkpoint import ModelCheckpoint, find_checkpoint
from waygraph.pipeline.encode.vision.jina_v4.inputs import (
    IMAGE_PREFIX,
    IMAGE_SUFFIX,
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    Grid,
    InputBatch,
    Picture,
    Prompts,
    grid_of,
    image_batch,
    text_batch,
    token_count,
)
from waygraph.pipeline.encode.vision.jina_v4.model import JinaV4, open_checkpoint
from waygraph.pipeline.encode.vision.pages import RECIPE, Page, Tile, joined, read_page
from waygraph.pipeline.encode.vision.patch_labels import patch_rows

log = logging.getLogger(__name__)

#: Longer queries are refused, since truncation would be silent.
MAX_QUERY_TOKENS = 2_048
#: Maximal number of tokens of a state's text, for states without a screenshot.
MAX_PASSAGE_TOKENS = 1_024
#: Maximal number of values of a multi-vector in a vector database.
MAX_VALUES = 2**20 - 1
#: Default token budget of a batch.
GPU_BUDGET, CPU_BUDGET = 16_384, 1_024


class JinaV4Encoder:
    """The reference encoder of screenshots. Threads may call it at once: preparation overlaps, computing does not.

    Parameters
    ----------
    checkpoint
        Description of the weights.
    model
        The network.
    prompts
        Token ids of prompts.
    settings
        Token budget, threads, compilation.
    screenshots
        Screenshots of states. Not needed for queries.
    """

    name = "jina-v4"
    needs_whole_site = False
    overlaps_calls = True
    reads: Reads = "screenshot"

    def __init__(
        self,
        checkpoint: ModelCheckpoint,
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
        self._warned_of_truncation = False
        on_gpu = model.device.type == "cuda"
        self.compiled = CompiledLayers(model, wanted=on_gpu if settings.compile is None else settings.compile)
        budget = settings.token_budget or (GPU_BUDGET if on_gpu else CPU_BUDGET)
        threads = settings.threads or len(os.sched_getaffinity(0))
        turn = threading.Lock()
        self._images = BatchRunner[Tile, Picture](
            self._prepare, self._encode_images, budget=budget, threads=threads, turn=turn
        )
        self._texts = BatchRunner[Sequence[int], Sequence[int]](
            lambda ids: ids, self._encode_texts, budget=budget, threads=1, turn=turn
        )

    @classmethod
    def load(cls, settings: EncodeSettings, screenshots: Screenshots | None = None) -> Self:
        """Find, check and load the checkpoint. Its licence is logged.

        Parameters
        ----------
        settings
            Weights, device, precision, batch size.
        screenshots
            Screenshots of states. Not needed for queries.

        Returns
        -------
        Self
            The encoder.

        Raises
        ------
        WeightsMissing
            If there is no checkpoint, or anything in it is missing, damaged or unexpected.
        InvalidInput
            If the device does not exist, or the pixel budget is impossible.
        """
        checkpoint = open_checkpoint(find_checkpoint(settings.weights), settings.max_pixels)
        device = compute_device(settings)
        model = JinaV4.load(checkpoint, device=device, dtype=compute_dtype(settings, device))
        return cls(checkpoint, model, Prompts.load(checkpoint), settings, screenshots)

    @property
    def dim(self) -> int:
        """Number of columns of every multi-vector."""
        return self.model.dim

    @property
    def recipe(self) -> dict[str, Any]:
        """Everything that vectors depend on, as JSON. Stored in the manifest of every version."""
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
        """`jina-v4-` and 16 hex digits of the recipe's hash."""
        return "jina-v4-" + hashlib.sha256(json.dumps(self.recipe, sort_keys=True).encode()).hexdigest()[:16]

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:  # noqa: ARG002 - screenshots need no context
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
            If one page does not fit into memory, or vectors are not finite.
        """
        pages = [read_page(observation, self._screenshots) for observation in observations]
        parts = [tile for page in pages for tile in page.tiles]
        with torch.inference_mode():
            of_images = iter(self._images.run(parts, [self._tokens_of(tile) for tile in parts]))
            texts = [page for page in pages if not page.tiles]
            passages = [self._passage(page) for page in texts]
            of_texts = iter(self._texts.run(passages, [len(ids) for ids in passages]))
        encoded = []
        for page in pages:
            if page.tiles:
                encoded.append(joined([(next(of_images), self._rows_of(tile)) for tile in page.tiles]))
            else:
                vectors = next(of_texts)
                encoded.append(joined([(vectors, [page.label] * len(vectors))]))
        for observation, page_vectors in zip(observations, encoded, strict=True):
            if page_vectors.vectors.size > MAX_VALUES:
                raise EncodingFailed(
                    f"The screenshot of {observation.url} has {len(page_vectors.vectors)} vectors, more than an index "
                    f"takes ({MAX_VALUES // self.dim}).",
                    hint="Lower WAYGRAPH_ENCODE__MAX_PIXELS.",
                )
        return encoded

    def encode_query(self, text: str) -> MultiVector:
        """Encode a query as float32 of shape (tokens of prefix and query, dim), rows of unit length."""
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
            If a query is empty, is not valid text, or has more than 2,048 tokens.
        """
        sequences = []
        for text in texts:
            ids = self.prompts.plain(QUERY_PREFIX + cleaned_query(text))
            refuse_longer(len(ids), MAX_QUERY_TOKENS)
            sequences.append(ids)
        with torch.inference_mode():
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

    def _encode_images(self, pictures: Sequence[Picture]) -> Tensor:
        return self._run(image_batch(pictures, self.prompts, self.model.backbone))

    def _encode_texts(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        return self._run(text_batch(sequences))

    def _run(self, batch: InputBatch) -> Tensor:
        vectors: Tensor = self.compiled.run(lambda: self.model(batch))
        return vectors

    def _passage(self, page: Page) -> list[int]:
        ids = self.prompts.plain(PASSAGE_PREFIX + page.text)
        if len(ids) > MAX_PASSAGE_TOKENS and not self._warned_of_truncation:
            self._warned_of_truncation = True
            log.warning(
                "encode/cut_text %s: the text of %s is truncated; later truncations are not logged",
                self.name,
                page.label,
            )
        return ids[:MAX_PASSAGE_TOKENS]

    def _rows_of(self, tile: Tile) -> tuple[str, ...]:
        grid = self._grid_of(tile)
        of_patches = patch_rows(tile.box, grid.rows // self._merge, grid.columns // self._merge)
        after = token_count(grid, self._merge) - len(of_patches) - self.prompts.image_start
        return ("screenshot",) * self.prompts.image_start + of_patches + ("screenshot",) * after
