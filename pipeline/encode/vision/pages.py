"""Input of vision encoders: the screenshot of a state in tiles, or its text if it has no screenshot."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from waygraph.core.errors import InvalidInput
from waygraph.index.graph import Box, Observation
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Screenshots
from waygraph.pipeline.encode.text_counts import clean
from waygraph.pipeline.encode.vision.screenshots import decode, read_size, tiles

log = logging.getLogger(__name__)

#: Part of the fingerprint. Change it with every change of the input of encoders.
RECIPE = "viewport|tiles(3,2,8)|text/2"


@dataclass(frozen=True, slots=True)
class Tile:
    """One image to encode: a whole screenshot as file content, or a part of a decoded one.

    Attributes
    ----------
    name
        The screenshot that it belongs to, for errors.
    box
        Position on the screenshot, in pixels.
    picture
        File content or pixels.
    """

    name: str
    box: Box
    picture: bytes | Image.Image

    def pixels(self) -> Image.Image:
        """Return the image as RGB. Raise BadImage if it cannot be decoded."""
        return decode(self.picture, self.name) if isinstance(self.picture, bytes) else self.picture


@dataclass(frozen=True, slots=True)
class Page:
    """Input of one state: tiles, or a text if the state was recorded without a screenshot."""

    tiles: tuple[Tile, ...]
    text: str
    label: str = ""
    """Label of the rows of the text. Empty if there are tiles."""


def read_page(observation: Observation, screenshots: Screenshots | None) -> Page:
    """Read a state's screenshot and cut it into tiles.

    A state that was recorded without a screenshot (its page closed before) is encoded by its title and texts, and so
    are tools and pages that were not visited, which have none.

    Parameters
    ----------
    observation
        The state.
    screenshots
        Screenshots by content hash.

    Returns
    -------
    Page
        Tiles, or a text.

    Raises
    ------
    InvalidInput
        If `screenshots` is None.
    BadImage, NotFound, StoreError
        If the screenshot cannot be read.
    """
    if not observation.screenshot:
        if observation.visited:
            log.warning("encode/no_screenshot %s %s is encoded by its text", observation.node_id, observation.url)
        return text_page(observation)
    if screenshots is None:
        raise InvalidInput(
            "This encoder reads screenshots, and none were given.",
            hint="Create it with the store's blobs: create_encoder(settings, screenshots=store.blobs).",
        )
    name = f"The screenshot of {observation.url} ({observation.node_id})"
    content = screenshots.get(observation.screenshot)
    width, height = read_size(content, name)
    boxes, cut = tiles(width, height)
    if cut:
        log.warning("encode/cut %s: the lowest %d of %d rows of pixels are not encoded", name, cut, height)
    if len(boxes) == 1:
        return Page((Tile(name, boxes[0], content),), "")
    whole = decode(content, name)  # decoded once; only the tiles are kept
    parts = (whole.crop((box.x, box.y, box.x + box.width, box.y + box.height)) for box in boxes)
    return Page(tuple(Tile(name, box, part) for box, part in zip(boxes, parts, strict=True)), "")


def text_page(observation: Observation) -> Page:
    """Return a state as text: its title, the names of what was not visited, and each of its texts once."""
    title = clean(observation.title)
    shown = [clean(segment.text) for segment in observation.segments]
    names = () if observation.visited else map(clean, observation.anchor_texts)
    # Further names of a lead are part of its text already.
    texts = dict.fromkeys([title, *(name for name in names if not any(name in text for text in shown)), *shown])
    return Page((), " ".join(text for text in texts if text) or observation.url, title or observation.url)


def joined(parts: Sequence[tuple[NDArray[np.float32], Sequence[str]]]) -> EncodedPage:
    """Join the vectors of a page's tiles and the labels of their rows."""
    rows = tuple(row for _, names in parts for row in names)
    return EncodedPage(np.concatenate([vectors for vectors, _ in parts]), rows, ((),) * len(rows))
