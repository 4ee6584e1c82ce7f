"""Thumbnails of start pages for the report page."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from PIL import Image

from waygraph.core.errors import WaygraphError
from waygraph.core.evenly_spaced import evenly_spaced
from waygraph.index.store import Store
from waygraph.pipeline.encode.vision.screenshots import decode, read_size
from waygraph.pipeline.jobs.report.outcomes import SiteOutcome

log = logging.getLogger(__name__)

#: Maximal number of sites shown, evenly spread over the list.
MAX_PICTURES = 24
_WIDTH, _HEIGHT = 280, 175
_QUALITY = 70


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """The upper part of a start page as JPEG, or the reason why there is none."""

    site: str
    states: int
    jpeg: bytes = b""
    problem: str = ""


def sample_sites(sites: Iterable[SiteOutcome], mapped: int) -> Iterator[SiteOutcome]:
    """Yield the sites to show. `mapped` is the number of all mapped sites."""
    positions = set(evenly_spaced(range(mapped), MAX_PICTURES))
    published = (site for site in sites if site.publication is not None)
    for position, site in enumerate(published):
        if position in positions:
            yield site


def load_thumbnail(store: Store, site: str, version: int, states: int) -> Thumbnail:
    """Return the thumbnail of a site as published in this run."""
    try:
        start_page = next(iter(store.observations(site, version).values()), None)
        if start_page is None or not start_page.screenshot:
            return Thumbnail(site, states, problem="no screenshot")
        return Thumbnail(site, states, jpeg=shrink(store.blobs.get(start_page.screenshot), site))
    except WaygraphError as error:
        # The version may be deleted or a blob lost since: write the report without this thumbnail.
        log.warning("report/no_picture %s: %s", site, error.message)
        return Thumbnail(site, states, problem=error.title)


def shrink(content: bytes, name: str) -> bytes:
    """Return the upper part of an image as a small JPEG.

    Parameters
    ----------
    content
        The image file.
    name
        What the image is, for errors.

    Returns
    -------
    bytes
        A JPEG.

    Raises
    ------
    BadImage
        If it cannot be decoded.
    """
    read_size(content, name)
    image = decode(content, name)
    image = image.crop((0, 0, image.width, min(image.height, max(1, image.width * _HEIGHT // _WIDTH))))
    small = image.resize((_WIDTH, max(1, round(_WIDTH * image.height / image.width))), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    small.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
