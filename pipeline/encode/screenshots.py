"""What may be on a screenshot's bytes, and which parts of it are encoded? Decoding that never guesses, and tiles."""

from __future__ import annotations

import io
import warnings
from math import ceil

from PIL import Image, UnidentifiedImageError
from PIL.ImageFile import ImageFile

from index.graph import Box
from waygraph.errors import BadImage

FORMATS = ("JPEG", "PNG", "WEBP")
#: Larger pictures are refused before they are decoded (three bytes of memory per pixel).
MAX_IMAGE_PIXELS = 150_000_000
#: A picture up to this many times as high as it is wide is encoded whole; viewports of phones are 2.2 times as high.
WHOLE_RATIO = 3.0
#: Tiles of a higher one are at most this many times as high as wide.
TILE_RATIO = 2.0
MAX_TILES = 8
#: Thinner pictures cannot be laid out in patches.
THINNEST = 200
RECAPTURE = "Index the site again to take a new screenshot."


def read_size(content: bytes, name: str) -> tuple[int, int]:
    """Width and height in pixels, from the header alone.

    Raises
    ------
    BadImage
        When it is no JPEG, PNG or WebP, has no pixels, is too large, or too thin. `name` says whose it is.

    """
    with _opened(content, name) as image:
        width, height = image.size
    if width < 1 or height < 1 or width * height > MAX_IMAGE_PIXELS:
        raise BadImage(
            f"{name} is {width} x {height} pixels; between 1 and {MAX_IMAGE_PIXELS:,} in all can be read.",
            hint="Use a smaller viewport.",
        )
    if width > THINNEST * height:
        raise BadImage(f"{name} is {width} x {height} pixels, too thin to be read.", hint="Use a higher viewport.")
    return width, height


def decode(content: bytes, name: str) -> Image.Image:
    """The picture as RGB, transparent parts on white.

    Raises
    ------
    BadImage
        When it cannot be decoded to its last row. Nothing is made up for what is missing.

    """
    image: Image.Image = _opened(content, name)
    try:
        image.load()
        if image.has_transparency_data:
            layered = Image.new("RGBA", image.size, "white")
            layered.alpha_composite(image.convert("RGBA"))
            image = layered
        return image if image.mode == "RGB" else image.convert("RGB")
    except (OSError, SyntaxError, ValueError, MemoryError) as error:
        raise BadImage(f"{name} cannot be decoded: {error}.", hint=RECAPTURE) from error


def tiles(width: int, height: int) -> tuple[tuple[Box, ...], int]:
    """The parts of a picture that are encoded one by one, from the top, and how many rows of pixels are left out.

    A viewport is one tile. A picture more than three times as high as wide would be shrunk until its text is
    unreadable; it is cut into tiles of equal height instead, at most twice as high as wide. Of a picture that is higher
    than eight such tiles the rest is left out.

    >>> tiles(1280, 800)
    ((Box(x=0, y=0, width=1280, height=800),), 0)
    >>> boxes, cut = tiles(1280, 100_000)
    >>> len(boxes), boxes[-1], cut
    (8, Box(x=0, y=17920, width=1280, height=2560), 79520)
    """
    if height <= WHOLE_RATIO * width:
        return (Box(0, 0, width, height),), 0
    count = ceil(height / (TILE_RATIO * width))
    tall = ceil(height / count) if count <= MAX_TILES else int(TILE_RATIO * width)
    tops = range(0, min(height, MAX_TILES * tall), tall)
    boxes = tuple(Box(0, top, width, min(tall, height - top)) for top in tops)
    return boxes, height - boxes[-1].y - boxes[-1].height


def _opened(content: bytes, name: str) -> ImageFile:
    try:
        with warnings.catch_warnings():
            # Its limit on size is a warning; ours is an error.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError as error:
        # Twice its own limit is an error there, before the size can be read.
        raise BadImage(f"{name} has more than {MAX_IMAGE_PIXELS:,} pixels.", hint="Use a smaller viewport.") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        what = "is empty" if not content else f"is no readable image ({len(content)} bytes)"
        raise BadImage(f"{name} {what}.", hint=RECAPTURE) from error
