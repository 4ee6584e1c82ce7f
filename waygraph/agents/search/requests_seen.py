"""Requests that an action sends, and those among them that may have changed data at the site."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from playwright.async_api import BrowserContext, Request

from waygraph.core.urls import site_key
from waygraph.pipeline.browser.guard import OutgoingRequest, RequestPolicy, StateChangingUrls
from waygraph.pipeline.explore.policies.hazard import HazardPolicy
from waygraph.pipeline.explore.policies.scope import registrable_domain

#: Types of requests by which pages change data. Others load parts of pages, or report that a page was used.
_TYPES = frozenset({"document", "xhr", "fetch"})


def _policy() -> RequestPolicy:
    """Return the policy of the explorer's guard: requests that only read by its rules change nothing."""
    hazards = HazardPolicy()
    return RequestPolicy(state_changing_urls=StateChangingUrls(lambda url: hazards.refuse_url(url) is not None))


def changes_when_loaded(url: str) -> bool:
    """Whether loading an address may change data at its site, by the rules of `RequestsSeen.changing`."""
    return _policy().may_change(OutgoingRequest("GET", url, {}, ""), is_document=True)


class RequestsSeen:
    """Records the requests of a browser context while an action is performed.

    Parameters
    ----------
    context
        The context.
    """

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._requests: list[Request] = []

    def __enter__(self) -> Self:
        self._context.on("request", self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.remove_listener("request", self._note)

    def changing(self, page: str) -> list[str]:
        """Return the requests to the site of a page that may have changed data there, as "POST https://...".

        These are requests with another method than GET that do not only read by the guard's rules (a POST without a
        body included), and documents whose address the lexicon of hazards knows, such as `/logout`. All hosts of the
        page's registrable domain belong to the site: pages often send their changes to another one (`api.`).

        Parameters
        ----------
        page
            URL of the page.

        Returns
        -------
        list of str
            The requests, each once, in order.
        """
        policy = _policy()
        found = [
            f"{each.method} {each.url}"
            for each in self._requests
            if each.resource_type in _TYPES
            and _is_same_site(each.url, page)
            and policy.may_change(_outgoing(each), is_document=each.resource_type == "document")
        ]
        return list(dict.fromkeys(found))

    def _note(self, request: Request) -> None:
        self._requests.append(request)


def _is_same_site(url: str, page: str) -> bool:
    """Whether two URLs have the same host, or hosts of one registrable domain."""
    ours, theirs = site_key(page), site_key(url)
    domain = registrable_domain(ours)
    return ours == theirs or (bool(domain) and registrable_domain(theirs) == domain)


def _outgoing(request: Request) -> OutgoingRequest:
    body = request.post_data_buffer
    text = body.decode("utf-8", "replace") if body is not None else ""
    return OutgoingRequest(request.method, request.url, request.headers, text)
