"""Check whether the guard kept an application from its content, so that the map shows its error page instead."""

from __future__ import annotations

from collections.abc import Iterable

from waygraph.core.errors import ContentStopped
from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.guard import advise_rule
from waygraph.pipeline.browser.page.snapshot import Snapshot

#: A map with fewer states is suspected if the guard stopped what its pages sent while loading.
FEW_STATES = 5
#: A start page with at most this many texts shows no content: a title, an excuse, a button to try again.
_MAX_TEXTS = 5
#: Kinds of requests that bring the content of pages.
_CONTENT_KINDS = frozenset({"xhr", "fetch", "websocket"})


def content_requests(blocked: Iterable[BlockedRequest]) -> tuple[BlockedRequest, ...]:
    """Return the stopped requests that may bring the content of a page, each once, in order."""
    return tuple(sorted({request for request in blocked if request.kind in _CONTENT_KINDS}))


def check_content(site: str, start: Snapshot, stopped: Iterable[BlockedRequest], *, states: int) -> str | None:
    """Check whether a finished map may show an application without its content.

    Parameters
    ----------
    site
        Key of the site.
    start
        Snapshot of the start page.
    stopped
        Requests that were stopped while pages were loading.
    states
        Number of states of the map.

    Returns
    -------
    str or None
        Advice with the rule that would allow the requests, if the map is suspiciously small; None if it is not.

    Raises
    ------
    ContentStopped
        If the start page shows next to nothing as well.
    """
    requests = content_requests(stopped)
    if states >= FEW_STATES or not requests:
        return None
    first = requests[0]
    more = f" (and {len(requests) - 1} more)" if len(requests) > 1 else ""
    found = f"The map of {site} has {states} state(s), and the guard stopped {first.method} {first.url}{more}"
    rule = advise_rule(first, start)
    if len(start.segments) <= _MAX_TEXTS:
        raise ContentStopped(
            f"{found} while its pages were loading: it shows what the application says when it gets no data.",
            hint=f"If these requests only read, allow them in a rules file (--rules):\n{rule}\n"
            "Or, on a site where actions may change data, use --guard observe.",
        )
    return f"{found} while its pages were loading. If that request only reads, allow it in the rules file:\n{rule}"
