"""How are the requests of one page judged? Over the DevTools protocol, in every target that belongs to the page."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from index.graph import BlockedRequest
from pipeline.browser.access import Access
from pipeline.browser.guard.children import ChildSession, Session, TargetTree
from pipeline.browser.guard.judge import NOTHING_ACTS, ActsOnGet, GuardMode, Judge
from pipeline.browser.guard.reads import MAX_BODY_CHARS, SAFE_METHODS, Sent
from pipeline.browser.guard.rules import GuardRules

log = logging.getLogger(__name__)

#: Only what can change something on a server, or show another document. Images, styles and scripts pass untouched, but
#: for addresses that look like acts.
_PATTERNS = [
    {"urlPattern": "*", "resourceType": kind, "requestStage": "Request"}
    for kind in ("Document", "XHR", "Fetch", "Ping", "Other", "CSPViolationReport")
]

#: What scripts ask for by themselves.
_BY_SCRIPTS = {"XHR", "Fetch"}

_EVERYTHING = [{"urlPattern": "*", "requestStage": "Request"}]

#: What the in-page half calls, in pages (answered by Playwright) and in workers (a DevTools binding).
_BINDING = "__waygraph_guard"

#: More than this between two calls of `take` is a flood; its rest is stopped all the same, and only counted.
_MOST_RECORDS = 1_000

#: Kind of what is recorded for a frame or worker that could not be guarded and was never set going.
UNGUARDED = "unguarded"

#: Says why a document must not be loaded, or nothing when it may.
DocumentPolicy = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class HeldNavigation:
    """A document (GET) that the page wanted to go to and was kept from: it still shows the one before."""

    url: str
    referrer: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a guard stopped.

    Attributes
    ----------
    blocked : requests that could change something at the server.
    refused : documents outside of what may be visited, as (URL, reason).
    held : documents that may be visited, which the guard was told to hold back.
    observed : requests that it would have stopped, but let through in the mode `observe`.
    """

    blocked: tuple[BlockedRequest, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    held: tuple[HeldNavigation, ...] = ()
    observed: tuple[BlockedRequest, ...] = ()


@cache
def guard_script(mode: GuardMode = "guard") -> str:
    """The half of the guard that every document of a context runs first, and every worker as early as it can."""
    source = files("pipeline.browser").joinpath("js_guard", "guard.js").read_text(encoding="utf-8")
    return f"{source}({json.dumps(mode)}, {json.dumps(_BINDING)});"


class NetworkGuard:
    """Watches what pages send, and keeps what it stopped. `prepare` its context first, then `attach` it to each page.

    The `Fetch` domain of a page's session sees what its frames and dedicated workers send; frames in processes of their
    own get sessions of their own. Messages over WebSockets are judged by a script inside the pages.

    With `hold` set, the main frame stays on its document: where it wants to go is told by `take`, so that the caller
    can load it elsewhere and go on with this one.

    Parameters
    ----------
    policy : which documents the main frame may load.
    rules : what only reads although its method says otherwise; those that come with waygraph when left out.
    access : headers to add to what goes to the site's own hosts.
    acts : what may not be asked for either, except as a page to show, although a GET should change nothing.
    """

    def __init__(
        self,
        policy: DocumentPolicy,
        *,
        mode: GuardMode = "guard",
        rules: GuardRules | None = None,
        access: Access | None = None,
        acts: ActsOnGet = NOTHING_ACTS,
    ) -> None:
        self._policy = policy
        self._access = access
        # Headers are asked for with images and styles as well.
        self._patterns = _EVERYTHING if access is not None and access.headers else [*_PATTERNS, *_worth_asking(acts)]
        self._judge = Judge(mode, rules or GuardRules(), acts)
        self.hold = False
        self.before_document: Callable[[str], Awaitable[None]] | None = None
        """Awaited before a document of the main frame is asked for: it may have to wait for its host's turn."""
        self.on_unguarded: Callable[[], None] | None = None
        """Told of each frame or worker that could not be guarded and was never set going."""
        self.requests = 0
        """Requests of scripts (fetch, XMLHttpRequest) that were let through."""
        self._blocked: list[BlockedRequest] = []
        self._refused: list[tuple[str, str]] = []
        self._held: list[HeldNavigation] = []
        self._observed: list[BlockedRequest] = []
        self._pending: set[asyncio.Future[None]] = set()

    async def prepare(self, context: BrowserContext) -> None:
        """Let every document that `context` will load be guarded from inside as well. Call it before opening pages."""
        await context.expose_binding(_BINDING, lambda _, report: self._on_report(report))
        await context.add_init_script(guard_script(self._judge.mode))

    async def attach(self, page: Page) -> CDPSession:
        """Guard `page` from now on; returns the DevTools session, which the caller may use as well."""
        session = await page.context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        main_frame: str = tree["frameTree"]["frame"]["id"]
        targets: TargetTree

        def on_event(source: Session, method: str, event: Mapping[str, Any]) -> None:
            if method == "Fetch.requestPaused":
                self._spawn(self._decide(source, event, main_frame, targets))
            elif method == "Runtime.bindingCalled" and event["name"] == _BINDING:
                self._on_report(event["payload"])

        targets = TargetTree(
            session,
            prepare=self._prepare_target,
            may_run=self._may_run_unguarded,
            on_event=on_event,
            spawn=self._spawn,
        )
        session.on("Fetch.requestPaused", lambda event: on_event(session, "Fetch.requestPaused", event))
        await session.send("Fetch.enable", {"patterns": self._patterns})
        await targets.watch()
        return session

    def take(self) -> Stopped:
        """What was stopped since the last call."""
        taken = Stopped(tuple(self._blocked), tuple(self._refused), tuple(self._held), tuple(self._observed))
        for kept in (self._blocked, self._refused, self._held, self._observed):
            kept.clear()
        return taken

    def record(self, request: BlockedRequest) -> None:
        """Note a request that was stopped elsewhere: by the egress proxy, by a page that did not send it."""
        kept = self._blocked if self._judge.stops else self._observed
        if len(kept) < _MOST_RECORDS:
            kept.append(request)

    async def _prepare_target(self, child: ChildSession) -> None:
        if child.kind == "iframe":
            await child.send("Fetch.enable", {"patterns": self._patterns})
            return
        # The frame's own session sees the requests of its workers, but nobody their WebSockets.
        await child.send("Runtime.enable")
        await child.send("Runtime.addBinding", {"name": _BINDING})
        await child.send("Runtime.evaluate", {"expression": guard_script(self._judge.mode)})

    def _may_run_unguarded(self, child: ChildSession) -> bool:
        if not self._judge.stops:
            return True
        self.record(BlockedRequest("GET", child.url, UNGUARDED))
        if self.on_unguarded is not None:
            self.on_unguarded()
        return False

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    def _on_report(self, text: str) -> bool:
        """Judge a message that a page wants to send over a WebSocket; record what a page or worker did not send."""
        try:
            report = json.loads(text)
            kind, url, message = str(report["kind"]), str(report["url"]), report["text"]
        except (ValueError, KeyError, TypeError):
            log.debug("guard/unreadable_report %.100s", text)
            return False
        # A worker asks nobody: what it reports it has not sent.
        asks = kind == "websocket" and not report.get("worker")
        if asks and not self._judge.message_may_change(url, message if isinstance(message, str) else None):
            return True
        self.record(BlockedRequest("SEND" if kind == "websocket" else "POST", url, kind))
        return False

    def _refusal(self, url: str) -> str | None:
        try:
            return self._policy(url)
        except ValueError:
            log.exception("guard/policy_failed %s", url)
            return "malformed"  # a URL that cannot be judged is not loaded

    def _may_change(self, event: Mapping[str, Any], *, leaves: bool) -> bool:
        request = event["request"]
        headers = {name.lower(): value for name, value in request["headers"].items()}
        sent = Sent(request["method"], request["url"], headers, _body_of(request))
        document = event["resourceType"] == "Document"
        return self._judge.may_change(sent, document=document, shown=leaves)

    async def _decide(self, session: Session, event: Mapping[str, Any], main_frame: str, targets: TargetTree) -> None:
        request = event["request"]
        method, url = request["method"], request["url"]
        verdict = "Fetch.continueRequest"
        details: dict[str, Any] = {"requestId": event["requestId"]}
        document = event["resourceType"] == "Document"
        leaves = document and event["frameId"] == main_frame
        stop = False
        if url.startswith(("http:", "https:")):
            changes = self._may_change(event, leaves=leaves)
            reason = self._refusal(url) if leaves else None
            if changes:
                # Events name the frame that a worker belongs to; who sent the request shows in its referrer alone.
                by_worker = not document and targets.has_worker(request["headers"].get("Referer", ""))
                self.record(BlockedRequest(method, url, "worker" if by_worker else event["resourceType"].lower()))
                stop = self._judge.stops
            if reason is not None and not stop:
                self._refused.append((url, reason))
                stop = True
            elif self.hold and leaves and not changes and method in SAFE_METHODS:
                self._held.append(HeldNavigation(url, request["headers"].get("Referer", "")))
                stop = True
        elif document and not url.startswith(("about:", "data:", "blob:")):
            # Files and the browser's own pages are no part of any site.
            self._refused.append((url, "scheme"))
            stop = True
        if not stop and leaves and self.before_document is not None:
            await self.before_document(url)
        self.requests += not stop and event["resourceType"] in _BY_SCRIPTS
        if stop:
            verdict = "Fetch.failRequest"
            # "Aborted" leaves the current document in place, any other reason replaces it with an error page.
            details["errorReason"] = "Aborted" if document else "BlockedByClient"
        elif self._access is not None and (headers := self._access.add_to(url, request["headers"])):
            details["headers"] = headers
        try:
            await session.send(verdict, details)
        except PlaywrightError as error:
            # The page went away meanwhile, and its requests with it.
            log.debug("guard/answer_too_late %s %s: %s", method, url, error)


def _worth_asking(acts: ActsOnGet) -> list[dict[str, str]]:
    return [{"urlPattern": glob, "requestStage": "Request"} for glob in acts.globs]


def _body_of(request: Mapping[str, Any]) -> str | None:
    """The body as text; nothing when there is more of it than the event holds."""
    entries = request.get("postDataEntries")
    if entries is None:
        body = request.get("postData")
        return body if isinstance(body, str) else None if request.get("hasPostData") else ""
    if not all("bytes" in entry for entry in entries):
        return None  # files, whose contents are not told
    content = b"".join(base64.b64decode(entry["bytes"]) for entry in entries)
    if len(content) > MAX_BODY_CHARS:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
