"""The texts by which a lead is found: names of its links, the words beside them, its URL, and what its kind shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from waygraph.index.graph import Box, Lead, Observation, Segment
from waygraph.index.graph.lead_order import kinds_first
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.text.borrowed_text import BorrowedTexts
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import count_segments

#: The vectors of leads are rounded to multiples of this. Their file is less than a third as large, since float16 hardly
#: compresses and about 60 distinct values do. The cosine of a row of `text` to the original stays above 0.99.
_STEP = np.float32(2**-6)
#: Rows of encoders that are shorter than this lose too much by rounding, and are kept as they are.
_SHORT = 0.7

#: Leads that get vectors: so many for each state, and at least so many of a map. The others, further records of long
#: lists, are found by their words alone: names of records are what sentence encoders miss.
ENCODED_PER_STATE, MIN_ENCODED = 4, 100

_NO_BOX = Box(0, 0, 0, 0)


def max_encoded(states: int) -> int:
    """Return how many leads get vectors in a map of so many states, and how many tools."""
    return max(MIN_ENCODED, ENCODED_PER_STATE * states)


def encoded_leads(leads: Iterable[Lead], states: int) -> list[Lead]:
    """Return the leads that get vectors in a map of so many states: kinds first, and none that a policy refuses."""
    return kinds_first(leads)[: max_encoded(states)]


def lead_observations(leads: Iterable[Lead], observations: Iterable[Observation]) -> list[Observation]:
    """Return what is known of pages that were not visited as observations, which every encoder reads.

    The first link name is the title. Further names, heading, description and what the page borrows from visited pages
    of its kind are its text. There is no screenshot, so encoders of screenshots read the text as well.

    Parameters
    ----------
    leads
        The leads.
    observations
        What the states of the site show.

    Returns
    -------
    list of Observation
        In the order of the leads.
    """
    known = list(leads)
    if not known:
        return []
    seen = list(observations)
    borrowed = BorrowedTexts(seen, SiteText.from_counts(count_segments(seen)))
    return [_observation(lead, borrowed.of(lead.url)) for lead in known]


def unvisited_pages(leads: Iterable[Lead], observations: Collection[Observation]) -> dict[str, Observation]:
    """Return what is known of the leads that get vectors as observations, by id."""
    encoded = encoded_leads(leads, len(observations))
    return {each.node_id: each for each in lead_observations(encoded, observations)}


def _observation(lead: Lead, borrowed: Sequence[str]) -> Observation:
    texts = (*lead.names[1:], lead.heading, lead.description, ", ".join(borrowed))
    context = ". ".join(text for text in texts if text)
    segments = (Segment(context, "text", _NO_BOX),) if context else ()
    title = lead.names[0] if lead.names else ""
    return Observation(lead.id, lead.url, title, segments, anchor_texts=lead.names, visited=False)


def rounded_page(page: EncodedPage) -> EncodedPage:
    """Return the vectors of a lead, rounded."""
    if np.linalg.norm(page.vectors, axis=1).min(initial=np.inf) < _SHORT:
        return page
    return replace(page, vectors=np.round(page.vectors / _STEP) * _STEP)
