"""A vision encoder that needs no weights: mean colours of patches. Some colours make it fail, each in a different way.

Queries are names of colours, one row each; a query without any matches everything alike.

Selected by name, like any third-party encoder: `tests.patch_encoder:create`.
"""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Sequence

import numpy as np
from PIL import Image, UnidentifiedImageError

from waygraph.core.errors import BadImage
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Box, Observation, SegmentCounts
from waygraph.index.vectors.multivector import EncodedPage, MultiVector
from waygraph.pipeline.encode.protocol import Reads, Screenshots, SiteContext
from waygraph.pipeline.encode.vision.patch_labels import patch_rows

SIDE, GRID = 16, 4
KILLS, RAISES, NOT_A_NUMBER = (1, 0, 0), (2, 0, 0), (3, 0, 0)
COLOURS = {
    "red": np.array([1, 0, 0, 0], np.float32),
    "green": np.array([0, 1, 0, 0], np.float32),
    "blue": np.array([0, 0, 1, 0], np.float32),
}
EVERYTHING = [np.ones(4, np.float32)]
#: What `create_slow` takes for a page.
SLOW_SECONDS = 0.05


def create(settings: EncodeSettings, screenshots: Screenshots | None) -> PatchEncoder:
    """Create an encoder without delay."""
    return PatchEncoder(screenshots, 0.0)


def create_slow(settings: EncodeSettings, screenshots: Screenshots | None) -> PatchEncoder:
    """Create an encoder with a delay, so that a test can interrupt it."""
    return PatchEncoder(screenshots, SLOW_SECONDS)


def picture(colour: tuple[int, int, int]) -> bytes:
    """A screenshot with a corner in another colour, so that not all patches are equal."""
    image = Image.new("RGB", (SIDE, SIDE), colour)
    image.paste((0, 0, 0), (SIDE // 2, SIDE // 2, SIDE, SIDE))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


class PatchEncoder:
    """One row for each of 16 patches: unit vectors of (red, green, blue, 1)."""

    name = "patch"
    dim = 4
    fingerprint = "patch-1"
    needs_whole_site = False
    overlaps_calls = False
    reads: Reads = "screenshot"

    def __init__(self, screenshots: Screenshots | None, seconds: float) -> None:
        self._screenshots = screenshots
        self._seconds = seconds

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:  # noqa: ARG002
        return {"grid": GRID}

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:  # noqa: ARG002
        return [self._encode(seen) for seen in observations]

    def _encode(self, seen: Observation) -> EncodedPage:
        time.sleep(self._seconds)
        if not seen.screenshot:
            return EncodedPage(np.ones((1, self.dim), np.float32), (seen.title,), ((),))
        assert self._screenshots is not None
        try:
            image = Image.open(io.BytesIO(self._screenshots.get(seen.screenshot)))
        except UnidentifiedImageError as error:
            raise BadImage(f"{seen.url}: {error}") from error
        first = image.getpixel((0, 0))
        if first == KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        if first == RAISES:
            raise ZeroDivisionError("a bug")
        size = image.size
        if size != (SIDE, SIDE):
            image = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
        pixels = np.asarray(image, np.float32).reshape(GRID, SIDE // GRID, GRID, SIDE // GRID, 3)
        means = pixels.mean(axis=(1, 3)).reshape(-1, 3) / 255
        vectors = np.concatenate([means, np.ones((len(means), 1), np.float32)], axis=1)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        if first == NOT_A_NUMBER:
            vectors[0] = np.nan
        rows = patch_rows(Box(0, 0, *size), GRID, GRID)
        return EncodedPage(vectors.astype(np.float32), rows, ((),) * len(rows))

    def encode_query(self, text: str) -> MultiVector:
        return self.encode_queries([text])[0]

    def encode_texts(self, texts: Sequence[str]) -> list[MultiVector]:
        return self.encode_queries(texts)

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        return [np.array([COLOURS[word] for word in text.split() if word in COLOURS] or EVERYTHING) for text in texts]
