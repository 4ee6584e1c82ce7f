"""Strict decoding of screenshots, and their division into tiles."""

from __future__ import annotations

import io
import warnings
from math import ceil

from PIL import Image, UnidentifiedImageError
from PIL.ImageFile import ImageFile

from waygraph.core.errors import BadImage
from waygraph.index.graph import Box

FORMATS = ("JPEG", "PNG", "WEBP")
#: Larger images are refused before they are decoded (three bytes of memory per pixel).
MAX_IMAGE_PIXELS = 150_000_000
#: Images up to this ratio of height to width are encoded whole. Phone viewports have 2.2.
WHOLE_RATIO = 3.0
#: Maximal ratio of height to width of the tiles of a higher image.
TILE_RATIO = 2.0
MAX_TILES = 8
#: Images with a larger ratio of width to height cannot be laid out in patches.
THINNEST = 200
RECAPTURE = "Index the site again to take a new screenshot."


def read_size(content: bytes, name: str) -> tuple[int, int]:
    """Return width and height in pixels, from the header alone.

    Parameters
    ----------
    content
        The file.
    name
        What the image is, for errors.

    Returns
    -------
    tuple[int, int]
        Width and height.

    Raises
    ------
    BadImage
        If it is not JPEG, PNG or WebP, has no pixels, is too large, or too thin.
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
    """Return the image as RGB, transparent parts on white.

    Parameters
    ----------
    content
        The file.
    name
        What the image is, for errors.

    Returns
    -------
    Image.Image
        Mode RGB.

    Raises
    ------
    BadImage
        If it cannot be decoded to its last row. Missing rows are not filled in.
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
    """Return the boxes of the tiles of an image, from the top, and the number of pixel rows that are left out.

    A viewport is one tile. An image more than three times as high as wide would be shrunk until its text is unreadable,
    so it is cut into tiles of equal height, each at most twice as high as wide. After eight tiles the rest is left out.

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
            # Pillow warns about large images; `read_size` raises an error.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError as error:
        # Above twice its limit Pillow raises before the size can be read.
        raise BadImage(f"{name} has more than {MAX_IMAGE_PIXELS:,} pixels.", hint="Use a smaller viewport.") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        what = "is empty" if not content else f"is not a readable image ({len(content)} bytes)"
        raise BadImage(f"{name} {what}.", hint=RECAPTURE) from error
