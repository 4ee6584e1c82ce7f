"""Decision whether a request may change something; shared by DevTools sessions, page scripts and the egress proxy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from waygraph.pipeline.browser.guard.outgoing import OutgoingRequest
from waygraph.pipeline.browser.guard.rules import GuardRules

#: `strict` blocks all requests except GET, HEAD and OPTIONS, and all WebSocket messages. `guard` also lets requests
#: and messages pass that only read by its rules. `observe` blocks nothing and records what `guard` would have blocked.
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
    """Which requests and WebSocket messages may change something at a server, under one mode and one set of rules."""

    mode: GuardMode = "guard"
    rules: GuardRules = field(default_factory=GuardRules)
    state_changing_urls: StateChangingUrls = NO_STATE_CHANGING_URLS

    @property
    def is_enforced(self) -> bool:
        """Whether state-changing requests are blocked, and not only recorded."""
        return self.mode != "observe"

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

    def message_may_change(self, url: str, text: str | None) -> bool:
        """Whether a WebSocket message could change something; binary messages (no `text`) always could."""
        return self.mode == "strict" or text is None or self.rules.matching_message_rule(url, text) is None
