"""Small images of screenshots."""

from __future__ import annotations

import io

from PIL import Image

from waygraph.core.errors import NotFound

#: Size in pixels: the shape of a window, at the width of a card.
WIDTH, HEIGHT = 400, 260
_QUALITY = 72


def make_thumbnail(screenshot: bytes) -> bytes:
    """Return the top of a screenshot as a small JPEG image of `WIDTH` x `HEIGHT` pixels.

    Parameters
    ----------
    screenshot
        A JPEG image.

    Returns
    -------
    bytes
        The small image. A screenshot that is less high than its part is filled up with white.

    Raises
    ------
    NotFound
        If the screenshot cannot be decoded.
    """
    try:
        with Image.open(io.BytesIO(screenshot), formats=("JPEG",)) as image:
            height = max(1, round(image.width * HEIGHT / WIDTH))
            # JPEG decoders scale by powers of two at little cost; twice the size keeps the result sharp.
            factor = max(1, image.width // (2 * WIDTH))
            image.draft("RGB", (image.width // factor, image.height // factor))
            height = max(1, round(image.width * HEIGHT / WIDTH))
            top = Image.new("RGB", (image.width, height), "white")
            top.paste(image.convert("RGB").crop((0, 0, image.width, min(height, image.height))), (0, 0))
            written = io.BytesIO()
            top.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(written, "JPEG", quality=_QUALITY)
            return written.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise NotFound(
            "There is no small image: the screenshot cannot be decoded.", hint="The screenshot itself may be damaged."
        ) from error
