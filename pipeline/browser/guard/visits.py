"""Requests that a document sends by itself while it loads: a plain visit sends them too, so they may pass.

An application that reads its data by POST or over a WebSocket shows an error page if they are stopped. What passes in a
visit teaches the shapes (`send_shape`) that may pass later as well, such as a heartbeat, or the next page of a list.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from waygraph.pipeline.browser.guard.outgoing import OutgoingRequest
from waygraph.pipeline.browser.guard.send_shape import operation_label, send_shape

#: Methods of requests and messages that a visit may send. PUT, PATCH and DELETE name a change.
_METHODS = frozenset({"POST", "SEND"})
#: Addresses of one host that the scripts of a page may request while it loads, or after one action. Previews of all
#: that a page links to ask for more, and are not needed: the linked pages are visited themselves.
MAX_SCRIPT_REQUESTS = 64
#: Passed requests that the egress proxy recognises, and labels that are kept for people.
_MAX_PERMITS, _MAX_LABELS = 20_000, 200


@dataclass(slots=True)
class SiteVisits:
    """What visits of a site's pages have sent.

    Attributes
    ----------
    common
        Shapes that the start page sends. Every page of the site may send them.
    sent
        Number of passed requests and messages by `operation_label`.
    over_budget
        URLs of pages whose scripts requested more than `MAX_SCRIPT_REQUESTS` addresses; the others were not sent.
    is_learning
        Whether the start page is being prepared. Later visits teach only the page that is visited, so that what passes
        does not depend on the order in which pages are visited.
    """

    common: set[str] = field(default_factory=set)
    sent: Counter[str] = field(default_factory=Counter)
    over_budget: set[str] = field(default_factory=set)
    is_learning: bool = True
    _permits: dict[str, None] = field(default_factory=dict)

    def record(self, request: OutgoingRequest) -> None:
        """Record a request that passes, so that the egress proxy lets it pass as well."""
        label = operation_label(request)
        if label in self.sent or len(self.sent) < _MAX_LABELS:
            self.sent[label] += 1
        self._permits[_fingerprint(request)] = None
        if len(self._permits) > _MAX_PERMITS:
            del self._permits[next(iter(self._permits))]

    def has_passed(self, request: OutgoingRequest) -> bool:
        """Whether a page's guard let this request pass; for the egress proxy, which sees no pages."""
        return _fingerprint(request) in self._permits


@dataclass(slots=True)
class PageVisit:
    """The document that one page shows: whether it is still loading, and what it sent meanwhile.

    Attributes
    ----------
    site
        What all pages of the site share.
    may_repeat
        Whether a request is free of words that name a change.
    is_loading
        Whether the document has not settled yet. Nothing was acted on then.
    is_scrolling
        Whether the page is being scrolled through, which no plain visit does.
    shapes
        Shapes that this document sent while it was loading.
    granted
        Shapes that may pass during the next action: a visit of the address that the action leads to sends them.
    stopped
        Shapes that did not pass, since the last `take_stopped`, of requests that name no change.
    paths
        URLs, without their queries, from which scripts of this document have read.
    requested
        By host, what scripts have requested since the document began to load, or the last action began.
    has_settled
        Whether the document had settled when the visit ended.
    url
        URL of the document.
    """

    site: SiteVisits
    may_repeat: Callable[[OutgoingRequest], bool]
    is_loading: bool = False
    is_scrolling: bool = False
    shapes: set[str] = field(default_factory=set)
    granted: frozenset[str] = frozenset()
    stopped: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    requested: dict[str, set[str]] = field(default_factory=dict)
    has_settled: bool = False
    url: str = ""

    def begin(self, url: str = "") -> None:
        """Begin the visit of another document: the browser is about to show it."""
        self.url, self.has_settled = url, False
        self.requested.clear()
        self.is_loading = True
        self.is_scrolling = False
        self.shapes.clear()
        self.paths.clear()

    def end(self, *, has_settled: bool = True) -> None:
        """End the visit: the document has settled. What it sends from now on may be the effect of an action."""
        self.is_loading = self.is_scrolling = False
        self.has_settled = has_settled

    def begin_action(self) -> None:
        """End the visit, because the page is about to be acted on.

        The action has a budget of its own, unless the page goes on with what it was doing.
        """
        self.is_loading = self.is_scrolling = False
        if self.has_settled:
            self.requested.clear()

    def begin_scrolling(self) -> None:
        """End the visit, because the page is about to be scrolled through: what it sends until `end` is an effect."""
        self.is_loading = False
        self.is_scrolling = True

    def lets_pass(self, request: OutgoingRequest) -> bool:
        """Return whether a visit sends this request, or has sent one of its shape.

        Parameters
        ----------
        request
            A request of a script, or a WebSocket message, that no rule lets pass.

        Returns
        -------
        bool
            False for PUT, PATCH and DELETE, for bodies that cannot be read, and for requests that name a change.
        """
        if not self._may_send(request):
            return False
        shape = send_shape(request)
        if self.is_loading:
            self.shapes.add(shape)
            if self.site.is_learning:
                self.site.common.add(shape)
        elif shape not in self.shapes and shape not in self.site.common and shape not in self.granted:
            self.stopped.add(shape)
            return False
        self.site.record(request)
        return True

    def scrolling_sends(self, request: OutgoingRequest) -> bool:
        """Return whether a stopped request is an effect of scrolling that, in a visit, would pass."""
        return self.is_scrolling and self._may_send(request)

    def _may_send(self, request: OutgoingRequest) -> bool:
        return request.method in _METHODS and request.body is not None and self.may_repeat(request)

    def reads(self, url: str, *, is_new_allowed: bool) -> bool:
        """Return whether a script may read from a URL; an allowed one is remembered without its query."""
        path = url.partition("#")[0].partition("?")[0]
        if is_new_allowed:
            self.paths.add(path)
        return path in self.paths

    def has_budget(self, url: str) -> bool:
        """Return whether a script may send a request, and count it. Requests of one address count once.

        Answers from memory count, too, so that what passes does not depend on what other pages requested before.
        """
        address = url.partition("#")[0]
        requested = self.requested.setdefault(urlsplit(address).netloc, set())
        if address not in requested and len(requested) >= MAX_SCRIPT_REQUESTS:
            self.site.over_budget.add(self.url)
            return False
        requested.add(address)
        return True

    def take_stopped(self) -> frozenset[str]:
        """Return the shapes that did not pass since the last call."""
        taken = frozenset(self.stopped)
        self.stopped.clear()
        return taken


def _fingerprint(request: OutgoingRequest) -> str:
    url = request.url.partition("#")[0]
    content = json.dumps([request.method, url, request.body])
    return hashlib.sha256(content.encode()).hexdigest()
