"""What do the sites of a run look like? Small pictures of the start pages of some, from the store."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from PIL import Image

from index.store import Store
from pipeline.encode.screenshots import decode, read_size
from pipeline.jobs.report.outcomes import SiteOutcome
from waygraph.errors import WaygraphError

log = logging.getLogger(__name__)

#: Sites that are shown at most, spread over the list evenly.
PICTURES = 24
_WIDTH, _HEIGHT = 280, 175
_QUALITY = 70


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """The upper part of a start page, as JPEG, or why there is none."""

    site: str
    states: int
    jpeg: bytes = b""
    problem: str = ""


def spread(places: Sequence[int], most: int) -> list[int]:
    """At most so many of them, the first and the last included, at even distances.

    >>> spread(range(10), 4), spread(range(2), 4)
    ([0, 3, 6, 9], [0, 1])
    """
    if len(places) <= most:
        return list(places)
    return [places[round(number * (len(places) - 1) / (most - 1))] for number in range(most)]


def choose(sites: Iterable[SiteOutcome], mapped: int) -> Iterator[SiteOutcome]:
    """The sites to show, of which so many are `mapped` in all."""
    shown = set(spread(range(mapped), PICTURES))
    found = (site for site in sites if site.publication is not None)
    for place, site in enumerate(found):
        if place in shown:
            yield site


def thumbnail(store: Store, site: str, version: int, states: int) -> Thumbnail:
    """The picture of a site, as it was published in this run."""
    try:
        seen = next(iter(store.observations(site, version).values()), None)
        if seen is None or not seen.screenshot:
            return Thumbnail(site, states, problem="no screenshot")
        return Thumbnail(site, states, jpeg=shrunk(store.blobs.get(seen.screenshot), site))
    except WaygraphError as error:
        # Versions that were collected since then, blobs that are lost: the report is worth more than its pictures.
        log.warning("report/no_picture %s: %s", site, error.message)
        return Thumbnail(site, states, problem=error.title)


def shrunk(content: bytes, name: str) -> bytes:
    """The upper part of a picture, small.

    Raises
    ------
    BadImage
        When it cannot be decoded.

    """
    read_size(content, name)
    image = decode(content, name)
    image = image.crop((0, 0, image.width, min(image.height, max(1, image.width * _HEIGHT // _WIDTH))))
    small = image.resize((_WIDTH, max(1, round(_WIDTH * image.height / image.width))), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    small.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
