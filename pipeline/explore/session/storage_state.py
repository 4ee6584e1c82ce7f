"""Storage states that users give: sessions, read and checked before a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from waygraph.core.errors import InvalidInput
from waygraph.pipeline.browser.storage.session_file import SessionState, read_session_file
from waygraph.pipeline.explore.policies.scope import registrable_domain

_HINT = "Save one with: waygraph login {site}"


def read_storage_state(path: Path | None, site: str) -> SessionState | None:
    """Read the storage state at `path`, and check that it contains a session of `site`.

    Parameters
    ----------
    path
        JSON file as `waygraph login` and Playwright write it; None for a visitor without a session.
    site
        Key of the site that is to be visited.

    Returns
    -------
    SessionState | None
        None without a path.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no storage state, has expired, or belongs to another site.
    """
    if path is None:
        return None
    state = read_session_file(path, _HINT.format(site=site))
    _check_site(state["cookies"], state["origins"], site, f"The storage state '{path}'")
    return state


def _check_site(cookies: list[dict[str, Any]], origins: list[dict[str, Any]], site: str, subject: str) -> None:
    """Raise InvalidInput unless a cookie or an origin is of the site and has not expired."""
    if not cookies and not origins:
        raise InvalidInput(f"{subject} is empty: it holds no login.", hint=_HINT.format(site=site))
    host = urlsplit(f"//{site}").hostname or site
    own_cookies = [cookie for cookie in cookies if _is_same_site(cookie["domain"].lstrip("."), host)]
    own_origins = [entry for entry in origins if _is_same_site(urlsplit(entry["origin"]).hostname or "", host)]
    if not own_cookies and not own_origins:
        others = sorted({c["domain"].lstrip(".") for c in cookies} | {urlsplit(o["origin"]).netloc for o in origins})
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise InvalidInput(f"{subject} belongs to {named}, not to {site}.", hint=_HINT.format(site=site))
    if own_cookies and not own_origins and all(_has_expired(cookie) for cookie in own_cookies):
        raise InvalidInput(f"{subject} has expired: every cookie for {site} has.", hint=_HINT.format(site=site))


def _is_same_site(other: str, host: str) -> bool:
    if other == host:
        return True
    domain = registrable_domain(host)
    return bool(domain) and registrable_domain(other) == domain


def _has_expired(cookie: Mapping[str, Any]) -> bool:
    expires = cookie.get("expires", -1)
    # -1 is a session cookie, which ends with the browser. Whether the server still accepts it is unknown.
    return isinstance(expires, int | float) and 0 < expires < time.time()
