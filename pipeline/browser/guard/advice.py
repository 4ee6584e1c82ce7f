"""Advice for users: a rule for a blocked request, when blocking it seems to have broken the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from waygraph.core.urls import site_key
from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.guard.outgoing import SAFE_METHODS
from waygraph.pipeline.browser.page.snapshot import Snapshot

#: Begin of the counters of stand-ins, see `js/guard.js`.
STAND_IN = "guard/stand_in_"
#: A page with at most this many texts and no elements waits for the response of a blocked request.
_MAX_EMPTY_SEGMENTS = 3
#: A page that keeps less than this share of its elements and texts has lost its content.
_KEPT_SHARE = 0.25
#: Kinds for which no rule would help: beacons, and frames that were never started.
_IRRELEVANT_KINDS = frozenset({"ping", "unguarded"})

_LOGIN = re.compile(r"/(log-?in|sign-?in|auth|sso|session/new|anmelden|connexion)\b", re.IGNORECASE)


def suggest_rule(
    blocked: Sequence[BlockedRequest], before: Snapshot | None, after: Snapshot, *, requested_url: str = ""
) -> str | None:
    """Suggest a rule for a blocked request if the page seems to be broken.

    Parameters
    ----------
    blocked
        The requests that were blocked.
    before
        The state that was acted on, or whose link was followed; None if the page was loaded without one.
    after
        The page after that.
    requested_url
        The document that was requested, if known: a requested login page does not mean that the session ended.

    Returns
    -------
    str or None
        The message with the rule; None if the page does not seem to be broken, or no rule would help.
    """
    suspects = [request for request in blocked if request.kind not in _IRRELEVANT_KINDS]
    if not suspects:
        return None
    if _looks_logged_out(before, after, requested_url):
        what = "looks logged out"
    elif _looks_empty(before, after):
        what = "is (nearly) empty"
    else:
        return None
    # A blocked request to `/logout` breaks less than a blocked request for content.
    request = min(suspects, key=lambda suspect: suspect.method in SAFE_METHODS)
    more = f" (and {len(suspects) - 1} more)" if len(suspects) > 1 else ""
    return (
        f"{after.url} {what} after the guard blocked {request.method} {request.url}{more}. "
        f"If that request only reads, allow it in the rules file:\n{advise_rule(request, after)}"
    )


def advise_stand_ins(site: str, counters: Iterable[str]) -> str:
    """Return the warning that pages of a site used stand-ins, by the counters of these.

    >>> advise_stand_ins("a.test", ["guard/stand_in_shared_worker"])
    'Pages of a.test use shared worker, replaced by a stand-in that never answers. What needs it is not in the map.'
    """
    names = ", ".join(sorted(name.removeprefix(STAND_IN).replace("_", " ") for name in counters))
    stand_in = "replaced by a stand-in that never answers. What needs it is not in the map."
    return f"Pages of {site} use {names}, {stand_in}"


def advise_rule(request: BlockedRequest, after: Snapshot) -> str:
    """Return the rule, in YAML, that allows a blocked request of the page that a snapshot shows."""
    parts = urlsplit(request.url)
    pattern = f"^{re.escape(f'{parts.scheme}://{parts.netloc}{parts.path}')}"
    # JSON strings are YAML strings, hence no text of the page can leave the quotes.
    host, url = json.dumps(site_key(after.raw_url)), json.dumps(pattern)
    site = f"sites:\n  - host: {host}\n"
    if request.method in SAFE_METHODS:
        return f"{site}    allow:\n      - {{name: a read, href: {url}}}"
    return f"{site}    reads:\n      - {{name: a read, method: {request.method}, url: {url}}}"


def _looks_empty(before: Snapshot | None, after: Snapshot) -> bool:
    if before is not None and before.id == after.id:
        return False
    if len(after.segments) <= _MAX_EMPTY_SEGMENTS and not after.candidates:
        return True
    return before is not None and _path(before.url) == _path(after.url) and _lost_most(before, after)


def _lost_most(before: Snapshot, after: Snapshot) -> bool:
    return len(after.structure) < _KEPT_SHARE * len(before.structure) and (
        len(after.segments) < _KEPT_SHARE * len(before.segments)
    )


def _looks_logged_out(before: Snapshot | None, after: Snapshot, requested_url: str) -> bool:
    if before is None or before.password or before.id == after.id:
        return False
    if requested_url and _path(requested_url) == _path(after.url):
        return False
    if _path(before.url) == _path(after.url):
        # A sign-in dialog leaves the content behind it in place.
        return after.password and _lost_most(before, after)
    return after.password or bool(_LOGIN.search(after.url) and not _LOGIN.search(before.url))


def _path(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc, parts.path.rstrip("/")
