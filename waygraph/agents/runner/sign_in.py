"""Sessions that have ended: each site of a task is checked on the first page that the agent sees of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from waygraph.agents.actions.sites import AgentSite
from waygraph.core.urls import site_key
from waygraph.pipeline.explore.session.login import sign_in_doubts

if TYPE_CHECKING:
    from waygraph.agents.observation.page_observation import PageObservation
    from waygraph.pipeline.browser.storage.session_file import SessionState


class SignInCheck:
    """Looks at the first page of each site that a session belongs to.

    Parameters
    ----------
    session
        The session that the task starts with; None: there is none, and nothing is checked.
    sites
        The sites of the task.
    """

    def __init__(self, session: SessionState | None, sites: Sequence[AgentSite]) -> None:
        self._session = session
        self._left = {site.key: site for site in sites if session is not None and _belongs(session, site.key)}

    def check(self, observation: PageObservation) -> str:
        """Return why the session seems to have ended, if this is the first page of a site; empty: it does not."""
        site = self._left.pop(site_key(observation.url), None)
        if site is None or self._session is None:
            return ""
        doubts = sign_in_doubts(site.url, observation.snapshot, self._session)
        if not doubts:
            return ""
        what = f"{observation.url} does not look signed in although a session was given for {site}"
        return f"{what}: {'; '.join(doubts)}. Save a new session with `waygraph login`, or by --login."


def _belongs(session: SessionState, key: str) -> bool:
    """Return whether a session holds something for a site; cookies are the same for all ports of a host."""
    host = urlsplit(f"//{key}").hostname or ""
    domains = [cookie["domain"].lstrip(".") for cookie in session["cookies"]]
    has_cookie = any(host == domain or host.endswith(f".{domain}") for domain in domains)
    return has_cookie or any(site_key(entry["origin"]) == key for entry in session["origins"])
