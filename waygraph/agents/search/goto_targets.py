"""Test loads of proposed addresses: a tab beside the current one shows whether an address answers with a page."""

from __future__ import annotations

import re

from waygraph.agents.actions.session import AgentSession
from waygraph.agents.actions.types import GotoAction
from waygraph.core.urls import normalize_url
from waygraph.pipeline.browser.guard import NetworkGuard, RequestPolicy, StateChangingUrls
from waygraph.pipeline.browser.page.failures import PageFailure
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.policies.hazard import HazardPolicy

#: Statuses of answers that are errors.
_ERROR = 400
#: Characters of text that an error page with the status 200 has at most (WebOperator's limit).
_MAX_ERROR_CHARS = 3_000
#: Titles and headings of error pages. The whole text must be one, so that articles about errors are pages.
_ERROR_TITLE = re.compile(
    r"(?:(?:error|oops)\W*)?(?:[45]\d\d\W*)?(?:error\W*)?"
    r"(?:(?:the )?(?:requested )?(?:page|url|document|file|address)?\W*(?:was |is |could |can ?)?(?:not (?:be )?found"
    r"|(?:does not|doesn.t) exist|no longer (?:exists|available))|bad request|unauthori[sz]ed|forbidden|access denied"
    r"|permission denied|internal (?:server )?error|bad gateway|service (?:temporarily )?unavailable|gateway time.?out"
    r"|too many requests|something went wrong|an error (?:has )?occurred|site can.t be reached)\W*",
    re.IGNORECASE,
)


class GotoTargets:
    """Loads addresses once each, and says why they are of no use to a search.

    The tab is guarded as an exploration is: requests that would change data are stopped, and so are redirects to
    addresses that change data or leave the scope of the task. What a plain visit of the page sends by itself passes.

    Parameters
    ----------
    session
        The browser session. Its current tab and observation stay as they are.
    """

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._scope = session.options.scope
        self._problems: dict[str, str] = {}

    async def problem(self, action: GotoAction) -> str:
        """Return why an address shows no page of the task.

        Parameters
        ----------
        action
            The action. Its address must have passed the gate: one that changes data must not be loaded to find out.

        Returns
        -------
        str
            One sentence; empty if a page answers. Equal addresses are loaded once in a search.

        Raises
        ------
        PageFailure
            If the browser opens no tab.
        """
        key = normalize_url(action.url)
        if key not in self._problems:
            self._problems[key] = await self._load(action)
        return self._problems[key]

    async def _load(self, action: GotoAction) -> str:
        hazards = StateChangingUrls(lambda url: HazardPolicy().refuse_url(url) is not None)
        guard = NetworkGuard(self._refusal, request_policy=RequestPolicy(state_changing_urls=hazards))
        async with self._session.tabs.beside():
            view = self._session.tabs.current
            await guard.attach(view.page)
            try:
                snapshot = (await view.goto(action.url, digest=False)).snapshot
            except PageFailure as failure:
                if refused := guard.take_stopped().refused:
                    return f"{action.url} redirects to {refused[-1][0]}, which is not loaded ({refused[-1][1]})."
                if view.downloads:
                    return f"{action.url} is a download."
                return f"{action.url} could not be loaded ({failure.net_code or failure.message})."
        return error_on(snapshot)

    def _refusal(self, url: str) -> str | None:
        outside = self._scope.refuse_url(url) if self._scope is not None else None
        refusal = outside or HazardPolicy(follows_items=True).refuse_url(url)
        return refusal.reason if refusal is not None else None


def error_on(snapshot: Snapshot) -> str:
    """Return why a page is an error, by its status, or by title and headings if it has little text; empty: it is none.

    Parameters
    ----------
    snapshot
        The page.

    Returns
    -------
    str
        One sentence.
    """
    if snapshot.status >= _ERROR:
        return f"{snapshot.raw_url} answers with the error {snapshot.status}."
    texts = [segment.text for segment in snapshot.segments]
    if sum(map(len, texts)) >= _MAX_ERROR_CHARS:
        return ""
    headings = [segment.text for segment in snapshot.segments if segment.role == "heading"]
    found = next((text for text in (snapshot.title, *headings) if _ERROR_TITLE.fullmatch(" ".join(text.split()))), "")
    return f"{snapshot.raw_url} shows an error page: '{found}'." if found else ""
