"""The text by which a lead is found: the names of its links, their heading, the words beside them, and its URL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from waygraph.index.catalog.lexical import LEAD_FACTOR
from waygraph.index.graph import Box, Lead, Observation, Segment
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Reads

#: Factor of the scores of leads beside those of states, by what the encoder reads. The `text` encoder adds the vectors
#: of a row and of the whole text, which for a lead are almost the same, so its scores are higher than those of states
#: that match as well. Not measured for encoders of screenshots.
LEAD_WEIGHTS: dict[Reads, float] = {"text": LEAD_FACTOR, "screenshot": 1.0}

#: The vectors of leads are rounded to multiples of this. Their file is less than half as large, since float16 hardly
#: compresses and about 200 distinct values do. The cosine of a row of `text` to the original stays above 0.9995.
_STEP = np.float32(2**-8)
#: Rows of encoders that are shorter than this lose too much by rounding, and are kept as they are.
_SHORT = 0.7

_NO_BOX = Box(0, 0, 0, 0)


def lead_observation(lead: Lead) -> Observation:
    """Return what is known of a page that was not visited as an observation, which every encoder reads.

    The first link name is the title. Further names, heading and description are texts of the page. There is no
    screenshot, so encoders of screenshots read the text as well.
    """
    context = ". ".join(text for text in (*lead.names[1:], lead.heading, lead.description) if text)
    segments = (Segment(context, "text", _NO_BOX),) if context else ()
    return Observation(lead.id, lead.url, lead.names[0] if lead.names else "", segments)


def weighted_page(page: EncodedPage, reads: Reads) -> EncodedPage:
    """Return the vectors of a lead, scaled so that its scores compare with those of states, then rounded."""
    scaled = page.vectors * np.float32(LEAD_WEIGHTS[reads])
    if np.linalg.norm(scaled, axis=1).min(initial=np.inf) < _SHORT:
        return replace(page, vectors=scaled)
    return replace(page, vectors=np.round(scaled / _STEP) * _STEP)
