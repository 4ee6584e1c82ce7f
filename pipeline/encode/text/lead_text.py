"""The text by which a lead is found: the names of its links, their heading, the words beside them, and its URL."""

from __future__ import annotations

from waygraph.index.graph import Box, Lead, Observation, Segment

_NO_BOX = Box(0, 0, 0, 0)


def lead_observation(lead: Lead) -> Observation:
    """Return what is known of a page that was not visited as an observation, which every encoder reads.

    The first link name is the title. Further names, heading and description are texts of the page. There is no
    screenshot, so encoders of screenshots read the text as well.
    """
    context = ". ".join(text for text in (*lead.names[1:], lead.heading, lead.description) if text)
    segments = (Segment(context, "text", _NO_BOX),) if context else ()
    return Observation(lead.id, lead.url, lead.names[0] if lead.names else "", segments)
