"""What is encoded of a state by an encoder that sees? Its screenshot in tiles, and text where there is none."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.graph import Box, Observation
from index.vectors.multivector import EncodedPage
from pipeline.encode.counts import clean
from pipeline.encode.protocol import Screenshots
from pipeline.encode.screenshots import decode, read_size, tiles
from waygraph.errors import InvalidInput

log = logging.getLogger(__name__)

#: Part of the fingerprint: raise it with every change of what is encoded of a state.
RECIPE = "viewport|tiles(3,2,8)|text/1"


@dataclass(frozen=True, slots=True)
class Tile:
    """What is encoded as one image: a screenshot that is still encoded as a file, or a part of a decoded one.

    Attributes
    ----------
    name : whose it is, for errors.
    box : its place on the screenshot, in pixels.

    """

    name: str
    box: Box
    picture: bytes | Image.Image

    def pixels(self) -> Image.Image:
        """The picture, as RGB (BadImage when it cannot be decoded)."""
        return decode(self.picture, self.name) if isinstance(self.picture, bytes) else self.picture


@dataclass(frozen=True, slots=True)
class Page:
    """A state as an encoder that sees takes it: tiles, or a text when it was recorded without a screenshot."""

    tiles: tuple[Tile, ...]
    text: str
    label: str = ""
    """What vectors of the text stand for; empty when there are tiles."""


def read_page(observation: Observation, screenshots: Screenshots | None) -> Page:
    """Fetch a state's screenshot and cut it into tiles.

    A state that was recorded without one (its page went away meanwhile) is encoded by its title and texts.

    Raises
    ------
    InvalidInput
        When nobody said where screenshots are.
    BadImage, NotFound, StoreError
        When there is one that cannot be read.

    """
    if not observation.screenshot:
        log.warning("encode/no_screenshot %s %s is encoded by its text", observation.node_id, observation.url)
        return text_page(observation)
    if screenshots is None:
        raise InvalidInput(
            "This encoder reads screenshots, and was not told where they are.",
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
    whole = decode(content, name)  # once for all its tiles, which are all that is kept of it
    parts = (whole.crop((box.x, box.y, box.x + box.width, box.y + box.height)) for box in boxes)
    return Page(tuple(Tile(name, box, part) for box, part in zip(boxes, parts, strict=True)), "")


def text_page(observation: Observation) -> Page:
    """A state as text: its title, and each of its texts once."""
    title = clean(observation.title)
    texts = dict.fromkeys([title, *(clean(segment.text) for segment in observation.segments)])
    return Page((), " ".join(text for text in texts if text) or observation.url, title or observation.url)


@lru_cache(maxsize=256)
def patch_rows(box: Box, rows: int, columns: int) -> tuple[str, ...]:
    """What the vectors of a tile's patches stand for, row by row: `screenshot x,y WxH`, in pixels of the screenshot.

    >>> patch_rows(Box(0, 100, 56, 28), 1, 2)
    ('screenshot 0,100 28x28', 'screenshot 28,100 28x28')
    """
    xs = [round(column * box.width / columns) for column in range(columns + 1)]
    ys = [round(row * box.height / rows) for row in range(rows + 1)]
    return tuple(
        f"screenshot {box.x + xs[c]},{box.y + ys[r]} {xs[c + 1] - xs[c]}x{ys[r + 1] - ys[r]}"
        for r in range(rows)
        for c in range(columns)
    )


def patch_box(row: str) -> Box | None:
    """Inverse of `patch_rows`; `None` for a row that stands for something else.

    >>> patch_box("screenshot 28,100 28x28"), patch_box("Orders")
    (Box(x=28, y=100, width=28, height=28), None)
    """
    kind, _, where = row.partition(" ")
    corner, _, size = where.partition(" ")
    numbers = [*corner.split(","), *size.split("x")]
    if kind != "screenshot" or len(numbers) != 4 or not all(number.isdigit() for number in numbers):
        return None
    x, y, width, height = map(int, numbers)
    return Box(x, y, width, height)


def joined(parts: Sequence[tuple[NDArray[np.float32], Sequence[str]]]) -> EncodedPage:
    """One page of the vectors of its tiles, and what their rows stand for."""
    rows = tuple(row for _, names in parts for row in names)
    return EncodedPage(np.concatenate([vectors for vectors, _ in parts]), rows, ((),) * len(rows))
