"""Network guard of pages: checks their requests over the DevTools protocol, in every target of a page."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.guard.child_targets import ChildSession, DevToolsSession, TargetTree
from waygraph.pipeline.browser.guard.credentials import SiteCredentials
from waygraph.pipeline.browser.guard.outgoing import (
    MAX_BODY_CHARS,
    SAFE_METHODS,
    OutgoingRequest,
    is_prefetch,
    websocket_message,
)
from waygraph.pipeline.browser.guard.request_policy import GuardMode, RequestPolicy, StateChangingUrls
from waygraph.pipeline.browser.guard.reuse import SCRIPT_TYPES, STATIC_TYPES
from waygraph.pipeline.browser.guard.static_files import StaticFiles
from waygraph.pipeline.browser.guard.static_responses import StaticResponses
from waygraph.pipeline.browser.guard.visits import PageVisit

log = logging.getLogger(__name__)

#: Intercepts what can change something on a server or show another document. Static files are intercepted if their URLs
#: look state-changing (`StateChangingUrls.globs`), and if they are stored (`StaticFiles`).
_PATTERNS = [
    {"urlPattern": "*", "resourceType": kind, "requestStage": "Request"}
    for kind in ("Document", "XHR", "Fetch", "Ping", "Other", "CSPViolationReport")
]

#: Intercepts the answer to a request for a document, too: the visit of the document begins there, and the header that
#: names speculation rules is removed.
_DOCUMENT_RESPONSES = {"urlPattern": "*", "resourceType": "Document", "requestStage": "Response"}

#: Response header that names files with speculation rules (lower case).
_SPECULATION_RULES = "speculation-rules"

_ALL_REQUESTS = [{"urlPattern": "*", "requestStage": "Request"}]

_STATIC_REQUESTS = [{"urlPattern": "http*", "resourceType": kind, "requestStage": "Request"} for kind in STATIC_TYPES]

#: Function that the guard script calls, in pages (answered by Playwright) and in workers (a DevTools binding).
_BINDING = "__waygraph_guard"

#: Limit of the requests recorded between two calls of `take_stopped`. Further ones are blocked and not recorded.
_MAX_RECORDS = 1_000

#: Limit of the shapes that are kept of one visit.
_MAX_SHAPES = 200

#: Kind of the record of a frame or worker that could not be guarded and was never started.
UNGUARDED_KIND = "unguarded"

#: Reasons of the document policy for which a document is not loaded into a frame after the visit, nor ahead of time.
_FORBIDDEN = frozenset({"robots", "rule"})

#: Headers by which scripts label requests for pages that a person may open next (Turbo, older browsers); lower case.
_PREFETCH_LABELS = ("x-sec-purpose", "x-purpose", "purpose", "x-moz")

#: Returns why a document must not be loaded, or None if it may.
DocumentPolicy = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class HeldNavigation:
    """A navigation (GET) that was held back; the page still shows its previous document.

    Attributes
    ----------
    url
        URL of the document, with its fragment.
    referrer
        The `Referer` header; empty if there is none.
    """

    url: str
    referrer: str


@dataclass(frozen=True, slots=True)
class StoppedRequests:
    """Requests that a guard stopped.

    Attributes
    ----------
    blocked
        Requests that could change something at the server.
    refused
        Documents that the document policy does not allow, as (URL, reason).
    held
        Allowed navigations that were held back.
    observed
        Requests that the mode `observe` let pass and `guard` would have blocked.
    shapes
        Shapes of the blocked requests that a visit may send, see `NetworkGuard.grant`.
    """

    blocked: tuple[BlockedRequest, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    held: tuple[HeldNavigation, ...] = ()
    observed: tuple[BlockedRequest, ...] = ()
    shapes: frozenset[str] = frozenset()


@dataclass(slots=True)
class _GuardedTargets:
    """What the guard needs of one page when a request of it, or of a target below it, is intercepted."""

    main_frame: str
    visit: PageVisit
    static: StaticResponses | None
    below: TargetTree = field(init=False)


@cache
def guard_script(mode: GuardMode = "guard") -> str:
    """Return the in-page part of the guard; every document runs it first, every worker as early as possible."""
    source = files("waygraph.pipeline.browser.guard").joinpath("js", "guard.js").read_text(encoding="utf-8")
    return f"{source}({json.dumps(mode)}, {json.dumps(_BINDING)});"


class NetworkGuard:
    """Guard of the pages of one context. Call `prepare` for the context first, then `attach` for each page.

    The `Fetch` domain of a page's session intercepts the requests of its frames and dedicated workers. Frames in other
    processes get their own sessions. A script inside the pages intercepts WebSocket messages.

    With `hold_navigations` set, the main frame stays on its document, and `take_stopped` returns where it tried to
    navigate. The caller can load that URL in another page and continue with this one.

    Parameters
    ----------
    document_policy
        Which documents the main frame may load.
    request_policy
        Which requests are state-changing, and whether they are blocked.
    credentials
        Headers to add to requests to the site's own hosts.
    static_files
        Answers requests for static files, and of scripts, that a page of the site has sent before; None: all are sent.
    counters
        Counts requests that are sent, see docs/counters.md; None: they are not counted.
    """

    def __init__(
        self,
        document_policy: DocumentPolicy,
        *,
        request_policy: RequestPolicy | None = None,
        credentials: SiteCredentials | None = None,
        static_files: StaticFiles | None = None,
        counters: Counter[str] | None = None,
    ) -> None:
        self._document_policy = document_policy
        self._request_policy = request_policy or RequestPolicy()
        self._credentials = credentials
        self._static_files = static_files
        self._counters = counters if counters is not None else Counter()
        # Headers must be added to requests for images and styles as well.
        self._patterns = [
            *(
                _ALL_REQUESTS
                if credentials is not None and credentials.headers
                else [*_PATTERNS, *_patterns_of(self._request_policy.state_changing_urls)]
            ),
            *(_STATIC_REQUESTS if static_files is not None else ()),
            _DOCUMENT_RESPONSES,
        ]
        self.hold_navigations = False
        self.stops_unknown_reads = False
        """Whether script requests of any method are stopped if their paths are new in the page, and messages that only
        a visit lets pass. For actions that are expected to change something, which a GET may do as well."""
        self.before_document: Callable[[str], Awaitable[None]] | None = None
        """Awaited before a document of the main frame is requested: it may have to wait for its host's turn."""
        self.on_unguarded: Callable[[], None] | None = None
        """Called for each frame or worker that could not be guarded and was never started."""
        self.requests = 0
        """Number of script requests (fetch, XMLHttpRequest) that passed."""
        self._blocked: list[BlockedRequest] = []
        self._refused: list[tuple[str, str]] = []
        self._held: list[HeldNavigation] = []
        self._observed: list[BlockedRequest] = []
        self._pending: set[asyncio.Future[None]] = set()
        self._visits: dict[Page, PageVisit] = {}

    async def prepare(self, context: BrowserContext) -> None:
        """Install the guard script in every document that `context` will load. Call it before opening pages."""
        await context.expose_binding(_BINDING, self._on_page_report)
        await context.add_init_script(guard_script(self._request_policy.mode))

    async def attach(self, page: Page) -> CDPSession:
        """Start guarding `page` and return the DevTools session, which the caller may use as well."""
        self._visits[page] = visit = self._request_policy.new_page_visit()
        page.on("close", self._forget_visit)
        session = await page.context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        static = StaticResponses(self._static_files, page) if self._static_files is not None else None
        guarded = _GuardedTargets(tree["frameTree"]["frame"]["id"], visit, static)

        def on_event(source: DevToolsSession, method: str, event: Mapping[str, Any]) -> None:
            if method == "Fetch.requestPaused":
                self._spawn(self._handle_paused(source, event, guarded))
            elif method == "Runtime.bindingCalled" and event["name"] == _BINDING:
                self._on_report(event["payload"])

        guarded.below = TargetTree(
            session,
            prepare=self._prepare_target,
            may_run=self._may_run_unguarded,
            on_event=on_event,
            spawn=self._spawn,
        )
        session.on("Fetch.requestPaused", lambda event: on_event(session, "Fetch.requestPaused", event))
        await session.send("Fetch.enable", {"patterns": self._patterns})
        await guarded.below.watch()
        return session

    async def detach(self, page: Page, session: CDPSession) -> None:
        """Stop guarding a page that is not waygraph's own; `session` is what `attach` returned."""
        page.remove_listener("close", self._forget_visit)
        self._forget_visit(page)
        try:
            await session.detach()
        except PlaywrightError as error:
            log.debug("guard/detached_late %s: %s", page.url, error)  # the page was closed

    def _forget_visit(self, page: Page) -> None:
        self._visits.pop(page, None)

    def end_visit(self, page: Page, capped: bool) -> None:
        """End the visit of the document that `page` shows: it has settled, or is not waited for any longer (capped)."""
        if (visit := self._visits.get(page)) is not None:
            visit.end(has_settled=not capped)

    def begin_action(self, page: Page) -> None:
        """End the visit of the document that `page` shows: it is about to be acted on."""
        if (visit := self._visits.get(page)) is not None:
            visit.begin_action()

    def sent_by_visit(self, page: Page) -> tuple[str, ...]:
        """Return the shapes (`send_shape`) that the document of `page` sent while it was loading, in order."""
        visit = self._visits.get(page)
        return tuple(sorted(visit.shapes)[:_MAX_SHAPES]) if visit is not None else ()

    def grant(self, page: Page, shapes: frozenset[str]) -> None:
        """Let requests of these shapes pass in `page` until the next call, besides those that its document sent."""
        if (visit := self._visits.get(page)) is not None:
            visit.granted = shapes

    def take_stopped(self) -> StoppedRequests:
        """Return the requests that were stopped since the last call."""
        stopped = StoppedRequests(
            tuple(self._blocked),
            tuple(self._refused),
            tuple(self._held),
            tuple(self._observed),
            frozenset().union(*(visit.take_stopped() for visit in self._visits.values())),
        )
        for records in (self._blocked, self._refused, self._held, self._observed):
            records.clear()
        return stopped

    def record(self, request: BlockedRequest) -> None:
        """Record a request that was blocked elsewhere: by the egress proxy, or by a page that did not send it."""
        self._counters["guard/scroll"] += request.kind == "scroll"
        records = self._blocked if self._request_policy.is_enforced else self._observed
        if len(records) < _MAX_RECORDS:
            records.append(request)

    async def _prepare_target(self, child: ChildSession) -> None:
        if child.kind == "iframe":
            await child.send("Fetch.enable", {"patterns": self._patterns})
            return
        # The session of the frame intercepts the requests of its workers, but no session intercepts their WebSockets.
        await child.send("Runtime.enable")
        await child.send("Runtime.addBinding", {"name": _BINDING})
        await child.send("Runtime.evaluate", {"expression": guard_script(self._request_policy.mode)})

    def _may_run_unguarded(self, child: ChildSession) -> bool:
        if not self._request_policy.is_enforced:
            return True
        self.record(BlockedRequest("GET", child.url, UNGUARDED_KIND))
        if self.on_unguarded is not None:
            self.on_unguarded()
        return False

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    def _on_page_report(self, source: Mapping[str, Any], text: str) -> bool:
        return self._on_report(text, self._visits.get(source["page"]))

    def _on_report(self, text: str, visit: PageVisit | None = None) -> bool:
        """Check a WebSocket message that a page is about to send; record what a page or a worker did not send."""
        try:
            report = json.loads(text)
            kind, url, message, content = str(report["kind"]), str(report["url"]), report["text"], report["bytes"]
        except (ValueError, KeyError, TypeError):
            log.debug("guard/unreadable_report %.100s", text)
            return False
        if kind == "speculation":
            self._counters["guard/speculation"] += 1
            return False
        if kind == "stand_in":
            self._counters[f"guard/stand_in_{message}"] += 1
            return False
        if kind == "scroll":
            if visit is not None:
                visit.begin_scrolling()
            return True
        # A worker gets no answer, hence it has not sent the messages that it reports.
        if kind == "websocket" and not report.get("worker"):
            is_binary = isinstance(content, str)
            body = content if is_binary else message if isinstance(message, str) else None
            outgoing = websocket_message(url, body, is_binary=is_binary)
            if not self._request_policy.message_may_change(outgoing) or self._is_of_visit(outgoing, visit):
                return True
            if visit is not None and visit.scrolling_sends(outgoing):
                kind = "scroll"
        self.record(BlockedRequest("POST" if report["kind"] == "ping" else "SEND", url, kind))
        return False

    def _refusal_of(self, url: str) -> str | None:
        try:
            return self._document_policy(url)
        except ValueError:
            log.exception("guard/policy_failed %s", url)
            return "malformed"  # a URL that the policy cannot parse is not loaded

    def _is_of_visit(self, request: OutgoingRequest, visit: PageVisit | None) -> bool:
        if visit is None or self.stops_unknown_reads or not self._request_policy.lets_visits_pass:
            return False
        return visit.lets_pass(request)

    def _may_change(
        self, outgoing: OutgoingRequest, resource_type: str, visit: PageVisit, *, is_navigation: bool
    ) -> bool:
        is_script_request = resource_type in SCRIPT_TYPES
        is_document = resource_type == "Document"
        if self._request_policy.may_change(outgoing, is_document=is_document, is_navigation=is_navigation):
            return not is_script_request or not self._is_of_visit(outgoing, visit)
        return is_script_request and not visit.reads(outgoing.url, is_new_allowed=not self.stops_unknown_reads)

    async def _handle_paused(
        self, session: DevToolsSession, event: Mapping[str, Any], guarded: _GuardedTargets
    ) -> None:
        if "responseStatusCode" not in event and "responseErrorReason" not in event:
            await self._handle_request(session, event, guarded)
            return
        if event["resourceType"] != "Document":
            if guarded.static is not None:
                await guarded.static.store(session, event)
        elif event["frameId"] == guarded.main_frame and "responseStatusCode" in event:
            guarded.visit.begin(event["request"]["url"])
            if guarded.static is not None:
                guarded.static.leave()
        try:
            await session.send("Fetch.continueResponse", {"requestId": event["requestId"], **self._kept_headers(event)})
        except PlaywrightError as error:
            log.debug("guard/answer_too_late %s: %s", event["request"]["url"], error)

    def _kept_headers(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters by which `Fetch.continueResponse` removes speculation rules; none if there are none."""
        headers = event.get("responseHeaders", ())
        kept = [header for header in headers if header["name"].lower() != _SPECULATION_RULES]
        if len(kept) == len(headers):
            return {}
        self._counters["guard/speculation"] += 1
        return {"responseCode": event["responseStatusCode"], "responseHeaders": kept}

    async def _handle_request(
        self, session: DevToolsSession, event: Mapping[str, Any], guarded: _GuardedTargets
    ) -> None:
        request, static = event["request"], guarded.static
        url = request["url"]
        is_navigation = event["resourceType"] == "Document" and event["frameId"] == guarded.main_frame
        is_stopped = self._stops(event, guarded, is_navigation=is_navigation)
        if not is_stopped and is_navigation and self.before_document is not None:
            await self.before_document(url)
        command, parameters = "Fetch.continueRequest", {"requestId": event["requestId"]}
        if is_stopped:
            command = "Fetch.failRequest"
            # "Aborted" leaves the current document in place; any other reason replaces it with an error page.
            parameters["errorReason"] = "Aborted" if event["resourceType"] == "Document" else "BlockedByClient"
        elif static is not None and (file := await static.find(event)) is not None:
            command, parameters = "Fetch.fulfillRequest", file.fulfilment(event["requestId"])
        else:
            self._count(event)
            if self._credentials is not None and (headers := self._credentials.with_headers(url, request["headers"])):
                parameters["headers"] = headers
            if static is not None and static.awaits(event):
                parameters["interceptResponse"] = True
            elif static is not None and request["method"] not in SAFE_METHODS:
                static.expect_changes()
        try:
            await session.send(command, parameters)
        except PlaywrightError as error:
            # The page and its requests are gone.
            log.debug("guard/answer_too_late %s %s: %s", request["method"], url, error)
            if static is not None:
                static.end(event)

    def _count(self, event: Mapping[str, Any]) -> None:
        """Count a request that is sent. `StaticFiles` counts those for static files."""
        kind, is_http = event["resourceType"], event["request"]["url"].startswith(("http:", "https:"))
        if kind in SCRIPT_TYPES:
            self.requests += 1
            self._counters["requests/script"] += is_http
        elif kind == "Document":
            self._counters["requests/document"] += is_http

    def _stops(self, event: Mapping[str, Any], guarded: _GuardedTargets, *, is_navigation: bool) -> bool:
        """Decide whether an intercepted request is stopped, and record it."""
        request = event["request"]
        method, url = request["method"], request["url"]
        resource_type = event["resourceType"]
        is_document = resource_type == "Document"
        if not url.startswith(("http:", "https:")):
            if is_document and not url.startswith(("about:", "data:", "blob:")):
                # Files and internal pages of the browser belong to no site.
                self._refused.append((url, "scheme"))
                return True
            return False
        visit = guarded.visit
        headers = {name.lower(): value for name, value in request["headers"].items()}
        outgoing = OutgoingRequest(method, url, headers, _body_of(request))
        may_change = self._may_change(outgoing, resource_type, visit, is_navigation=is_navigation)
        refusal = self._refusal_of(url) if is_navigation else None
        if may_change:
            # An event names the frame that a worker belongs to; only the referrer shows that a worker sent the request.
            by_worker = not is_document and guarded.below.has_worker(headers.get("referer", ""))
            kind = "worker" if by_worker else "scroll" if visit.scrolling_sends(outgoing) else resource_type.lower()
            self.record(BlockedRequest(method, url, kind))
            if self._request_policy.is_enforced:
                return True
        if not is_navigation and self._is_unasked(outgoing, resource_type, visit):
            return True
        if refusal is not None:
            self._refused.append((url, refusal))
            return True
        if resource_type in SCRIPT_TYPES and self._request_policy.is_enforced and not visit.has_budget(url):
            self._counters["guard/over_budget"] += 1
            return True
        if self.hold_navigations and is_navigation and not may_change and method in SAFE_METHODS:
            # The fragment is not part of the request's URL. Applications with hash routes show another page by it.
            self._held.append(
                HeldNavigation(url + request.get("urlFragment", ""), request["headers"].get("Referer", ""))
            )
            return True
        return False

    def _is_unasked(self, outgoing: OutgoingRequest, resource_type: str, visit: PageVisit) -> bool:
        """Decide whether to stop a request that no visit needs: a prefetch, or one for what robots.txt forbids.

        Requests of a document for its own parts are not compared with robots.txt, which is about pages: an application
        whose robots.txt forbids its API would show nothing.
        """
        headers = outgoing.headers
        if is_prefetch(headers.get("sec-purpose", "")):
            self._counters["guard/speculation"] += 1
            return True
        is_optional = (
            resource_type == "Other"  # `<link rel=preload as=fetch>`: a script that needs it requests it again
            or (resource_type == "Document" and not visit.is_loading)  # a frame that an action or scrolling brought
            or any(is_prefetch(headers.get(label, "")) for label in _PREFETCH_LABELS)
        )
        if not is_optional or self._refusal_of(outgoing.url) not in _FORBIDDEN:
            return False
        self._counters["guard/forbidden"] += 1
        return True


def _patterns_of(urls: StateChangingUrls) -> list[dict[str, str]]:
    return [{"urlPattern": glob, "requestStage": "Request"} for glob in urls.globs]


def _body_of(request: Mapping[str, Any]) -> str | None:
    """Return the body as text; None if the event does not hold all of it."""
    entries = request.get("postDataEntries")
    if entries is None:
        body = request.get("postData")
        return body if isinstance(body, str) else None if request.get("hasPostData") else ""
    if not all("bytes" in entry for entry in entries):
        return None  # the event does not hold the content of files
    content = b"".join(base64.b64decode(entry["bytes"]) for entry in entries)
    if len(content) > MAX_BODY_CHARS:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
