"""Decision whether a request may change something; shared by DevTools sessions, page scripts and the egress proxy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from waygraph.pipeline.browser.guard.outgoing import BINARY, OutgoingRequest
from waygraph.pipeline.browser.guard.rules import GuardRules
from waygraph.pipeline.browser.guard.visits import PageVisit, SiteVisits

#: `strict` blocks all requests except GET, HEAD and OPTIONS, and all WebSocket messages. `guard` also lets requests
#: and messages pass that only read by its rules, or that visits of pages send (`SiteVisits`). `observe` blocks nothing
#: and records what `guard` would have blocked.
GuardMode = Literal["strict", "guard", "observe"]


@dataclass(frozen=True, slots=True)
class StateChangingUrls:
    """URLs that change something at the server with any method, also GET, such as `/logout`.

    Attributes
    ----------
    matches
        Whether a URL is one of them.
    globs
        Patterns of the DevTools protocol (`*`, `?`) that match these URLs and few others. Requests for images, scripts
        and the like are intercepted only if their URL matches one.
    """

    matches: Callable[[str], bool]
    globs: tuple[str, ...] = ()


NO_STATE_CHANGING_URLS = StateChangingUrls(lambda _: False)


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Which requests and WebSocket messages may change something at a server, under one mode and one set of rules.

    Attributes
    ----------
    mode
        What is stopped.
    rules
        Rules for requests that only read.
    state_changing_urls
        URLs that change something with any method.
    visits
        What visits of pages have sent. Only the mode `guard` lets it pass.
    """

    mode: GuardMode = "guard"
    rules: GuardRules = field(default_factory=GuardRules)
    state_changing_urls: StateChangingUrls = NO_STATE_CHANGING_URLS
    visits: SiteVisits = field(default_factory=SiteVisits)

    @property
    def is_enforced(self) -> bool:
        """Whether state-changing requests are blocked, and not only recorded."""
        return self.mode != "observe"

    @property
    def lets_visits_pass(self) -> bool:
        """Whether requests pass that a page sends by itself while it loads."""
        return self.mode == "guard"

    def new_page_visit(self) -> PageVisit:
        """Return the record of what one page sends while it loads its documents."""
        return PageVisit(self.visits, self._may_repeat)

    def has_passed(self, request: OutgoingRequest) -> bool:
        """Whether this request, or message, passed in a visit. For the egress proxy, which sees no pages."""
        return self.lets_visits_pass and self.visits.has_passed(request)

    def may_change(self, request: OutgoingRequest, *, is_document: bool = False, is_navigation: bool = False) -> bool:
        """Whether a request could change something.

        Parameters
        ----------
        request
            The request.
        is_document
            It requests a document. With another method than GET it is a submitted form.
        is_navigation
            The document is that of the page itself, whose URL the document policy has checked.

        Returns
        -------
        bool
            True unless the request only reads by its method or by a rule.
        """
        if not is_navigation and self.state_changing_urls.matches(request.url):
            return True
        if not self.rules.is_state_changing(request.method, request.url, request.headers):
            return False
        return self.mode == "strict" or self.rules.matching_read_rule(request, is_document=is_document) is None

    def message_may_change(self, message: OutgoingRequest) -> bool:
        """Whether a WebSocket message could change something; binary messages always could."""
        if self.mode == "strict" or message.body is None or message.content_type == BINARY:
            return True
        return self.rules.matching_message_rule(message) is None

    def _may_repeat(self, request: OutgoingRequest) -> bool:
        return not self.state_changing_urls.matches(request.url) and not self.rules.names_change(request)
