"""Did stopping a request break the page? Then say which request, and the rule that would let it through."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from index.graph import BlockedRequest, site_key
from pipeline.browser.snapshot import Snapshot

#: A page that shows so little, where a request was stopped, waits for the answer.
_NEXT_TO_NOTHING = 3
_LOST_SHARE = 0.25

_LOGIN = re.compile(r"/(log-?in|sign-?in|auth|sso|session/new|anmelden|connexion)\b", re.IGNORECASE)


def advice(blocked: Sequence[BlockedRequest], before: Snapshot | None, after: Snapshot) -> str | None:
    """What to tell the user when a page looks broken after requests were stopped; nothing when it does not.

    Parameters
    ----------
    before : the state that was acted on; nothing for a load.
    after : what was seen then.
    """
    suspects = [request for request in blocked if request.kind not in {"ping", "unguarded"}]
    if not suspects:
        return None
    if _looks_logged_out(before, after):
        what = "looks logged out"
    elif _looks_empty(before, after):
        what = "is (nearly) empty"
    else:
        return None
    request = suspects[0]
    more = f" (and {len(suspects) - 1} more)" if len(suspects) > 1 else ""
    parts = urlsplit(request.url)
    pattern = f"^{re.escape(f'{parts.scheme}://{parts.netloc}{parts.path}')}"
    # JSON strings are YAML strings: nothing that a page chose can leave the quotes.
    host, url = json.dumps(site_key(after.raw_url)), json.dumps(pattern)
    return (
        f"{after.url} {what} after the guard stopped {request.method} {request.url}{more}. "
        f"If that request only reads, allow it in the rules file:\n"
        f"sites:\n  - host: {host}\n    reads:\n"
        f"      - {{name: a read, method: {request.method}, url: {url}}}"
    )


def _looks_empty(before: Snapshot | None, after: Snapshot) -> bool:
    if len(after.segments) <= _NEXT_TO_NOTHING and not after.candidates:
        return True
    return (
        before is not None
        and before.id != after.id
        and len(after.structure) < _LOST_SHARE * len(before.structure)
        and len(after.segments) < _LOST_SHARE * len(before.segments)
    )


def _looks_logged_out(before: Snapshot | None, after: Snapshot) -> bool:
    if before is None or before.password or before.id == after.id:
        return False
    return after.password or bool(_LOGIN.search(after.url) and not _LOGIN.search(before.url))
