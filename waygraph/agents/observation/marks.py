"""Set-of-marks (arXiv:2310.11441): a screenshot with a box and an id on each element that can be acted on."""

from __future__ import annotations

import io
from collections.abc import Iterable

from PIL import Image, ImageDraw, ImageFont

from waygraph.agents.observation.elements import ObservedElement
from waygraph.pipeline.browser.page.snapshot import WindowView

#: Colours of neighbouring marks differ.
_COLOURS = ("#c62828", "#1565c0", "#2e7d32", "#6a1b9a", "#ad4e00", "#00695c")
_FONT_PX = 13
_PADDING_PX = 2


def draw_marks(screenshot: bytes, elements: Iterable[ObservedElement], view: WindowView) -> bytes:
    """Draw boxes and ids on a screenshot of the window.

    Parameters
    ----------
    screenshot
        The image.
    elements
        Elements of the observation; those outside of the window, covered ones and options of lists get no mark.
    view
        Where the window was on the page when the observation was taken.

    Returns
    -------
    bytes
        A PNG of the same size.
    """
    image = Image.open(io.BytesIO(screenshot)).convert("RGB")
    scale = image.width / view.width if view.width else 1.0
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(round(_FONT_PX * scale))
    labels = []
    for number, element in enumerate(elements):
        box = element.box
        left, top = (box.x - view.scroll_x) * scale, (box.y - view.scroll_y) * scale
        right, bottom = left + box.width * scale, top + box.height * scale
        is_outside = right <= 0 or bottom <= 0 or left >= image.width or top >= image.height
        if is_outside or element.list_ref or element.candidate.covered or right - left < 1 or bottom - top < 1:
            continue
        colour = _COLOURS[number % len(_COLOURS)]
        draw.rectangle((left, top, right, bottom), outline=colour, width=max(1, round(scale)))
        labels.append((max(left, 0.0), max(top, 0.0), element.ref, colour))
    for left, top, ref, colour in labels:  # over all boxes
        _, _, width, height = draw.textbbox((0, 0), ref, font=font, anchor="lt")
        pad = _PADDING_PX * scale
        x = min(left, image.width - width - 2 * pad)
        y = top - height - 2 * pad  # above the box, so that its text stays legible
        if y < 0:
            y = min(top, image.height - height - 2 * pad)
        draw.rectangle((x, y, x + width + 2 * pad, y + height + 2 * pad), fill=colour)
        draw.text((x + pad, y + pad), ref, fill="white", font=font, anchor="lt")
    out = io.BytesIO()
    image.save(out, format="PNG")
    return out.getvalue()
