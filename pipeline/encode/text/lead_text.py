"""The text by which a lead is found: the names of its links, their heading, the words beside them, and its URL."""

from __future__ import annotations

from dataclasses import replace

from waygraph.index.catalog.lexical import LEAD_FACTOR
from waygraph.index.graph import Lead, Observation
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Reads

#: Factor of the scores of leads beside those of states, by what the encoder reads. The `text` encoder adds the vectors
#: of a row and of the whole text, which for a lead are almost the same, so its scores are higher than those of states
#: that match as well. Not measured for encoders of screenshots.
LEAD_WEIGHTS: dict[Reads, float] = {"text": LEAD_FACTOR, "screenshot": 1.0}


def lead_observation(lead: Lead) -> Observation:
    """Return what is known of a page that was not visited as an observation, which every encoder reads.

    Names, heading and description are joined to the title, so that the `text` encoder makes one row of a lead: with a
    row for the name and one for the rest, leads took twice the bytes and were found no better. There is no screenshot,
    so encoders of screenshots read the text as well.
    """
    title = ". ".join(text for text in (*lead.names, lead.heading, lead.description) if text)
    return Observation(lead.id, lead.url, title, ())


def weighted_page(page: EncodedPage, reads: Reads) -> EncodedPage:
    """Return the vectors of a lead, scaled so that its scores compare with those of states."""
    return replace(page, vectors=LEAD_WEIGHTS[reads] * page.vectors)
