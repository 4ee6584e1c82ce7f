"""Did stopping a request break the page? Then say which request, and the rule that would let it through."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from index.graph import BlockedRequest, site_key
from pipeline.browser.guard.reads import SAFE_METHODS
from pipeline.browser.snapshot import Snapshot

#: A page that shows so little, where a request was stopped, waits for the answer.
_NEXT_TO_NOTHING = 3
_LOST_SHARE = 0.25
#: Beacons, and frames that were never set going: no rule would help.
_NEVER_MISSED = frozenset({"ping", "unguarded"})

_LOGIN = re.compile(r"/(log-?in|sign-?in|auth|sso|session/new|anmelden|connexion)\b", re.IGNORECASE)


def advice(
    blocked: Sequence[BlockedRequest], before: Snapshot | None, after: Snapshot, *, asked: str = ""
) -> str | None:
    """What to tell the user when a page looks broken after requests were stopped; nothing when it does not.

    Parameters
    ----------
    before : the state that was acted on, or that a link led away from; nothing when a page was loaded from nowhere.
    after : what was seen then.
    asked : the document that was asked for, when it is known: a login page that was asked for is no surprise.
    """
    suspects = [request for request in blocked if request.kind not in _NEVER_MISSED]
    if not suspects:
        return None
    if _looks_logged_out(before, after, asked):
        what = "looks logged out"
    elif _looks_empty(before, after):
        what = "is (nearly) empty"
    else:
        return None
    # A script that is kept from `/logout` breaks less than one that is kept from what it wants to show.
    request = min(suspects, key=lambda suspect: suspect.method in SAFE_METHODS)
    more = f" (and {len(suspects) - 1} more)" if len(suspects) > 1 else ""
    return (
        f"{after.url} {what} after the guard stopped {request.method} {request.url}{more}. "
        f"If that request only reads, allow it in the rules file:\n{_rule(request, after)}"
    )


def _rule(request: BlockedRequest, after: Snapshot) -> str:
    parts = urlsplit(request.url)
    pattern = f"^{re.escape(f'{parts.scheme}://{parts.netloc}{parts.path}')}"
    # JSON strings are YAML strings: nothing that a page chose can leave the quotes.
    host, url = json.dumps(site_key(after.raw_url)), json.dumps(pattern)
    site = f"sites:\n  - host: {host}\n"
    if request.method in SAFE_METHODS:
        return f"{site}    allow:\n      - {{name: a read, href: {url}}}"
    return f"{site}    reads:\n      - {{name: a read, method: {request.method}, url: {url}}}"


def _looks_empty(before: Snapshot | None, after: Snapshot) -> bool:
    if before is not None and before.id == after.id:
        return False
    if len(after.segments) <= _NEXT_TO_NOTHING and not after.candidates:
        return True
    return before is not None and _path(before.url) == _path(after.url) and _lost_most(before, after)


def _lost_most(before: Snapshot, after: Snapshot) -> bool:
    return len(after.structure) < _LOST_SHARE * len(before.structure) and (
        len(after.segments) < _LOST_SHARE * len(before.segments)
    )


def _looks_logged_out(before: Snapshot | None, after: Snapshot, asked: str) -> bool:
    if before is None or before.password or before.id == after.id:
        return False
    if asked and _path(asked) == _path(after.url):
        return False
    if _path(before.url) == _path(after.url):
        # A dialog that asks to sign in lies above what was there before.
        return after.password and _lost_most(before, after)
    return after.password or bool(_LOGIN.search(after.url) and not _LOGIN.search(before.url))


def _path(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc, parts.path.rstrip("/")
