"""Observation of a page: wait until it has settled, then take a snapshot or a digest."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.page.closed_roots import UNDISCLOSED_ROOTS
from waygraph.pipeline.browser.page.code_requests import UNCONFIRMED_CODE, CodeRequests
from waygraph.pipeline.browser.page.cross_origin_frames import CrossOriginFrames
from waygraph.pipeline.browser.page.evaluate import PageEvaluator, PageUnresponsive, parse_script_result
from waygraph.pipeline.browser.page.failures import FailureKind, PageFailure, failure_cause
from waygraph.pipeline.browser.page.script import WAYGRAPH
from waygraph.pipeline.browser.page.snapshot import Snapshot, SnapshotOptions, parse_snapshot, with_further_rows

log = logging.getLogger(__name__)

#: Times that the settle cap is extended for a page that is still loading when it is reached.
_MAX_EXTENSIONS = 2
#: A document is searched for closed shadow roots once, and once more each for its successors and for what a script
#: writes into it.
_MAX_DISCLOSURES = 4


@dataclass(frozen=True, slots=True)
class SettledPage:
    """State of a page after it has settled.

    Attributes
    ----------
    digest
        Hash of everything in the document that a person or a script would find again, see `PageView.digest`; empty if
        the document was replaced meanwhile.
    capped
        Whether the page did not settle within the cap.
    tabs
        URLs of tabs that the page tried to open, see `Snapshot.tabs`.
    stopped
        Form posts into new tabs that were not sent, see `Snapshot.stopped`.
    snapshot
        A snapshot without a digest, if the digest differs from the expected one, or a script has moved the focus.
    dialogs
        JavaScript dialogs that were raised, see `Snapshot.dialogs`.
    """

    digest: str
    capped: bool
    tabs: tuple[str, ...]
    stopped: tuple[BlockedRequest, ...]
    snapshot: Snapshot | None = None
    dialogs: tuple[str, ...] = ()


class PageObserver:
    """Takes snapshots and digests of one page. Not safe for concurrent use.

    Parameters
    ----------
    page
        The page.
    evaluator
        Evaluates scripts in the page.
    frames
        Cross-origin frames of the page.
    options
        What snapshots contain.
    owned
        Whether waygraph owns the page, so that closed shadow roots can be disclosed.
    response_timeout_s
        Timeout of the first attempt of a call, in seconds: a response can be lost with its document.
    code_timeout_s
        Limit of waiting for scripts that were requested, in seconds.
    """

    def __init__(
        self,
        page: Page,
        evaluator: PageEvaluator,
        frames: CrossOriginFrames,
        options: SnapshotOptions,
        *,
        owned: bool,
        response_timeout_s: float,
        code_timeout_s: float,
    ) -> None:
        self._page = page
        self._evaluator = evaluator
        self._frames = frames
        self._options = options
        self._owned = owned
        self._response_timeout_s = response_timeout_s
        self._code_timeout_s = code_timeout_s
        self._code = CodeRequests(page)
        self.has_canvas = True
        """Whether the page may have canvases; updated by each snapshot."""

    def detach(self) -> None:
        """Stop listening to the page."""
        self._code.detach()

    async def observe(self, *, hovering: bool, digest: bool = True) -> Snapshot:
        """Wait until the page has settled, then take a snapshot, see `PageView.observe`."""
        options = {**self._options.to_js(hovering=hovering), "digest": digest}
        result = await self._frames.call_merged(lambda: self._call_until_done("observe", options), "observe", options)
        self._note_waits(result)
        return self._parse(result)

    async def digest(self) -> str:
        """Return the digest of the page, see `PageView.digest`."""
        return await self._call_until_done("digest", None)

    async def settle(self, *, hovering: bool, unless_digest: str | None = None) -> SettledPage:
        """Wait until the page has settled, then take its digest, see `PageView.settle`."""
        options = self._options.to_js(hovering=hovering)
        page_options = options if unless_digest is None else {**options, "unlessDigest": unless_digest}
        result = await self._frames.call_merged(lambda: self._call_settle(page_options), "settle", options)
        if not result:
            return SettledPage("", capped=False, tabs=(), stopped=())
        self._note_waits(result)
        digest: str = result["digest"]
        snapshot: Snapshot | None = None
        if "snapshot" in result:
            snapshot = self._parse(result["snapshot"])
        elif unless_digest is not None and digest != unless_digest:
            snapshot = await self.observe(hovering=hovering, digest=False)  # includes the cross-origin frames
        return SettledPage(
            digest,
            result["settled"]["capped"],
            tuple(result["tabs"]),
            tuple(BlockedRequest(method, url, "form") for method, url in result["stopped"] if method != "GET"),
            snapshot,
            tuple(result["dialogs"]),
        )

    async def read_on(self, snapshot: Snapshot) -> tuple[Snapshot, int]:
        """Scroll lists that grow to their ends, see `PageView.read_on`."""
        raw = await self._call_script("readOn", self._options.to_js())
        if not raw:
            return snapshot, 0
        result = parse_script_result(raw)
        return with_further_rows(snapshot, result), result["cut"]

    async def wait_until_drawn(self) -> None:
        """Wait until the canvases in view stay the same, see `PageView.wait_until_drawn`."""
        if self.has_canvas:
            await self._evaluator.evaluate(f"() => {WAYGRAPH}?.waitUntilDrawn()", None)

    def _note_waits(self, result: Mapping[str, Any]) -> None:
        self._options.waits.note(self._page.url, result["settled"]["waiting"], result["settled"]["ended"])

    def _parse(self, result: Mapping[str, Any]) -> Snapshot:
        self.has_canvas = result["hasCanvas"]
        return parse_snapshot(result, self._options.url_policy)

    async def _call_until_done(self, function: str, options: Mapping[str, Any] | None) -> str:
        """Call the in-page script; if the document is replaced meanwhile, call it in the successor."""
        deadline = time.monotonic() + self._evaluator.timeout_s
        timeout_s = self._response_timeout_s
        extensions = _MAX_EXTENSIONS
        while True:
            try:
                result = await self._call_script(function, _with_extension(options, extensions), timeout_s=timeout_s)
                if result:
                    return result
                if result is not None:
                    extensions -= 1
                    continue
                await self._evaluator.install()
            except PlaywrightError as error:
                if failure_cause(error).kind is not FailureKind.DOCUMENT_REPLACED:
                    raise PageFailure.of(error, self._page.url) from error
            except PageUnresponsive:
                # The response may have been lost with its document: call once more.
                left_s = deadline - time.monotonic()
                if timeout_s >= left_s:
                    raise
                log.info("view/asked_again %s", self._page.url)
                timeout_s = left_s
            if time.monotonic() > deadline:
                message = f"{self._page.url} is replaced too often to be observed."
                raise PageFailure(message, FailureKind.DOCUMENT_REPLACED)

    async def _call_settle(self, options: Mapping[str, Any]) -> str:
        for extensions in range(_MAX_EXTENSIONS, -1, -1):
            try:
                raw = await self._call_script("settle", _with_extension(options, extensions))
            except PlaywrightError as error:
                if failure_cause(error).kind is FailureKind.DOCUMENT_REPLACED:
                    return ""
                raise PageFailure.of(error, self._page.url) from error
            if raw != "":
                return raw or ""
        return ""

    async def _call_script(
        self, function: str, options: Mapping[str, Any] | None, *, timeout_s: float = 0.0
    ) -> str | None:
        """Call a function of the in-page script in the page's own document.

        The script returns early, and is called again, from a document that may have closed shadow roots (which are
        disclosed to it), and from one with modules (until the scripts that were requested have arrived).

        Parameters
        ----------
        function
            Name of the function.
        options
            Its options; None: the function takes none, and never returns early.
        timeout_s
            Timeout in seconds; 0: the default of the evaluator.

        Returns
        -------
        str or None
            The JSON that the function returns. Empty: the page is still loading, and the options allow an extension.
            None: the document has no in-page script.
        """
        expression = f"o => {WAYGRAPH}?.{function}(o) ?? null"
        if options is None:
            bare: str | None = await self._evaluator.evaluate(expression, None, timeout_s)
            return bare
        disclosures = _MAX_DISCLOSURES if self._owned else 0
        code_deadline = time.monotonic() + self._code_timeout_s
        is_code_here = False
        while True:
            early = {"reportsSuspects": disclosures > 0, "code": "arrived" if is_code_here else "report"}
            result: str | None = await self._evaluator.evaluate(expression, {**options, **early}, timeout_s)
            if result == UNDISCLOSED_ROOTS:
                disclosures -= 1
                await self._evaluator.disclose_roots()
            elif result == UNCONFIRMED_CODE:
                left_s = code_deadline - time.monotonic()
                is_code_here = left_s <= 0 or not await self._code.wait(left_s)
            else:
                return result


def _with_extension(options: Mapping[str, Any] | None, extensions: int) -> Mapping[str, Any] | None:
    """Add to the options whether the script may return early from a page that is still loading at the cap."""
    return {**options, "mayExtend": extensions > 0} if options is not None else None
