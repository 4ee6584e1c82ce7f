"""Verification of an arrival at a page that was not visited: by its URL, its status, and its title or headings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from waygraph.core.urls import site_key
from waygraph.index.graph import Lead
from waygraph.pipeline.browser.page.snapshot import Snapshot

#: Least HTTP status of an error.
_ERROR = 400
_WORD = re.compile(r"[^\W\d_]{3,}")
#: Leading letters that forms of one word share ("Report", "Reports").
_STEM = 5


def arrival_problem(snapshot: Snapshot, lead: Lead) -> str:
    """Return why a page is not accepted as the page of a lead.

    The page must not be an error page. Its URL must be that of the lead, and its title or a heading must have a word of
    a link name or of the URL's path. If the site redirected to another of its URLs, it must be a word of a link name.

    Parameters
    ----------
    snapshot
        The page.
    lead
        What is known of the page that is expected.

    Returns
    -------
    str
        The problem; empty if the page is accepted.
    """
    if snapshot.status >= _ERROR:
        return f"{snapshot.raw_url} answered with HTTP status {snapshot.status}."
    names = _stems(lead.names)
    headings = (segment.text for segment in snapshot.segments if segment.role == "heading")
    shown = _stems([snapshot.title, *headings])
    if snapshot.url != lead.url:
        if site_key(snapshot.url) == site_key(lead.url) and names & shown:
            return ""
        return f"The link leads to {lead.url}, and the page is {snapshot.url}."
    expected = names | _stems([urlsplit(lead.url).path])
    if expected and not expected & shown:
        return f"Neither the title nor a heading of {snapshot.url} has a word of the link '{lead.title}' or of the URL."
    return ""


def _stems(texts: Iterable[str]) -> set[str]:
    return {word[:_STEM] for text in texts for word in _WORD.findall(text.casefold())}
