"""Cross-origin frames of a page: calls of the in-page script in them, merged into the result of the page.

A script can read only documents of its own origin. The in-page script therefore reports the frames that it cannot read
(`crossOrigin` in its results: a token for each, whether it is sandboxed, and where it is if it is exposed). The script
runs in those of them that belong to the site as well, and `graft` merges the results.

Playwright has no link between its frames and the elements that the script reports. `_name_frames` makes one: it stores
a random token on the element of each frame, which the script reports from then on.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from msgspec import structs
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Frame, Page

from waygraph.core.errors import BrowserFailure
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.evaluate import call_text, parse_script_result
from waygraph.pipeline.browser.page.failures import FailureKind, failure_cause, first_line
from waygraph.pipeline.browser.page.frame_scope import FrameScope
from waygraph.pipeline.browser.page.graft import ResetValues, ScriptResult, graft, merge_activity, merge_digests
from waygraph.pipeline.browser.page.script import WAYGRAPH, page_script

log = logging.getLogger(__name__)

#: Depth of frames in frames whose content is included; of a deeper frame only its element is.
MAX_DEPTH = 4
#: The script is called in the page and its frames again if a frame was busy: at most this often in all.
MAX_ROUNDS = 4
#: A frame whose document is replaced this often during one call is given up.
_MAX_TRIES = 5
#: Moves of the pointer to a place in a frame that does not notice it, and the time to wait after each.
_MAX_POINTER_MOVES, _POINTER_TIMEOUT_MS = 10, 100
_HAS_POINTER = """timeoutMs => new Promise(done => {
  const until = performance.now() + timeoutMs;
  const check = () => {
    if (document.querySelector(":hover")) done(true);
    else if (performance.now() > until) done(false);
    else requestAnimationFrame(check);
  };
  check();
})"""
_STORE_TOKEN = "(element, token) => { element[Symbol.for('waygraph frame')] = token; }"  # noqa: S105 - JavaScript

#: Awaits a browser call for at most the given seconds; raises `BrowserFailure` if there is no response.
WithTimeout = Callable[[Awaitable[Any], float], Awaitable[Any]]

#: Calls a function of the in-page script (name, arguments); returns its JSON, or None if the document went away.
CallScript = Callable[..., Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class _FrameResult:
    """Result of the script in one frame.

    Attributes
    ----------
    result
        The parsed result; None if the frame did not respond.
    is_busy
        Whether the frame, or one inside it, had to settle first, so that the page may have changed.
    """

    result: ScriptResult | None
    is_busy: bool


class CrossOriginFrames:
    """Cross-origin frames of one page that belong to its site.

    Parameters
    ----------
    page
        The page.
    scope
        Which frames belong to the site.
    with_timeout
        Awaits browser calls with a timeout.
    timeout_s
        Timeout of a call to a frame, in seconds. Of a frame that does not respond only its element is included.
    """

    def __init__(self, page: Page, scope: FrameScope, with_timeout: WithTimeout, *, timeout_s: float) -> None:
        self._page = page
        self._scope = scope
        self._with_timeout = with_timeout
        self._timeout_s = timeout_s
        self._by_token: dict[str, Frame] = {}
        self._unresponsive: dict[Frame, str] = {}
        """URL of each frame that did not respond; the frame is skipped until it shows another document."""

    @property
    def known(self) -> tuple[Frame, ...]:
        """Frames that have a token, are still attached and belong to the site."""
        return tuple(frame for frame in self._by_token.values() if self._is_included(frame))

    async def call_merged(
        self, call_page: Callable[[], Awaitable[str]], function: str, options: Mapping[str, Any]
    ) -> ScriptResult:
        """Call a function of the script in the page and in its frames, and merge the results.

        Without such frames this costs no more than the call in the page. Otherwise the function is called in each frame
        once, and in all documents again if a frame was busy, because it may have changed the page around it.

        Parameters
        ----------
        call_page
            Calls the function in the page and returns the JSON; empty: the document went away.
        function
            Name of the function, `observe` or `settle`.
        options
            Its options.

        Returns
        -------
        ScriptResult
            The merged result; empty if the page gave none.
        """
        reset_values = ResetValues()
        result: ScriptResult = {}
        for _ in range(MAX_ROUNDS):
            raw = await call_page()
            if not raw:
                return {}
            result = parse_script_result(raw)
            frames = result["crossOrigin"]
            again = bool(frames) and (await self._name_frames(frames) or await self._merge(result, function, options))
            reset_values.add(result)
            if not again:
                break
        reset_values.apply_to(result)
        return result

    async def find(
        self, action: Action, options: Mapping[str, Any], call_page: CallScript
    ) -> tuple[dict[str, Any] | None, tuple[Frame, ...]]:
        """Find a recorded element, see `find` in `js/find.js`, in the page or in the frame that the action names.

        Parameters
        ----------
        action
            The recorded action.
        options
            Options of the in-page script.
        call_page
            Calls a function of the script in the document that the search starts in.

        Returns
        -------
        tuple
            The result of the search, with points in coordinates of the page (None: the document went away), and the
            frames on the way to the element, outermost first.
        """
        raw = await call_page("find", action.to_json(), options)
        found: dict[str, Any] | None = parse_script_result(raw) if raw is not None else None
        if found is None or "crossOrigin" not in found:
            return found, ()
        frame = self._frame_of(found["crossOrigin"])
        if frame is None and await self._name_frames([["", True, None]]):
            raw = await call_page("find", action.to_json(), options)
            frame = self._frame_of(parse_script_result(raw).get("crossOrigin", "")) if raw is not None else None
        if frame is None:
            return {"rung": ""}, ()
        remaining = tuple(found["remaining"])

        async def call_frame(function: str, *arguments: object) -> str | None:
            return await self.call(frame, function, *arguments)

        inner, frames = await self.find(structs.replace(action, frame=remaining), options, call_frame)
        if inner is not None and "x" in inner:
            path = action.frame[: len(action.frame) - len(remaining)]
            raw = await call_page("reveal", path, inner["x"], inner["y"])
            if raw is None:
                return None, ()
            inner = {**inner, **parse_script_result(raw)}
        return inner, (frame, *frames)

    async def call(self, frame: Frame, function: str, *arguments: object) -> str | None:
        """Call a function of the in-page script in a frame, and install the script first where it is missing.

        Parameters
        ----------
        frame
            The frame.
        function
            Name of the function.
        *arguments
            JSON values.

        Returns
        -------
        str or None
            The JSON that the function returns; None if the document of the frame was replaced too often.

        Raises
        ------
        BrowserFailure
            If the frame does not respond.
        PlaywrightError
            If the frame is gone.
        """
        expression = f"given => {WAYGRAPH}?.{function}(...given) ?? null"
        for _ in range(_MAX_TRIES):
            try:
                call = frame.evaluate(call_text(expression, list(arguments)))
                raw: str | None = await self._with_timeout(call, self._timeout_s)
                if raw is not None:
                    return raw
                await self._with_timeout(frame.evaluate(page_script()), self._timeout_s)
            except PlaywrightError as error:
                if frame.is_detached() or failure_cause(error).kind is not FailureKind.DOCUMENT_REPLACED:
                    raise
        return None

    async def move_pointer(self, frame: Frame, x: float, y: float) -> None:
        """Move the pointer to a point of the page, until the frame at this point has received it.

        A frame in its own process receives pointer events only after the browser has drawn it at its place. Until then
        clicks go to the page around it and have no effect.
        """
        for _ in range(_MAX_POINTER_MOVES):
            await self._with_timeout(self._page.mouse.move(x, y), self._timeout_s)
            if await self._with_timeout(frame.evaluate(_HAS_POINTER, _POINTER_TIMEOUT_MS), self._timeout_s):
                return
        log.info("frames/not_pointed %s", frame.url)

    async def note_action(self, *others: Frame) -> None:
        """Notify all frames, and `others`, that an action begins: timers that are due from now on belong to it."""
        frames = {*self.known, *others}
        await asyncio.gather(*(self._note_action_in(frame) for frame in frames))

    async def _note_action_in(self, frame: Frame) -> None:
        try:
            await self._with_timeout(frame.evaluate(f"() => {WAYGRAPH}?.noteAction()"), self._timeout_s)
        except (PlaywrightError, BrowserFailure) as error:
            log.debug("frames/gone %s: %s", frame.url, error)

    def _frame_of(self, token: str) -> Frame | None:
        frame = self._by_token.get(token)
        return frame if frame is not None and self._is_included(frame) else None

    def _is_included(self, frame: Frame) -> bool:
        return (
            not frame.is_detached()
            and self._scope.covers(frame.url, self._page.url)
            and self._unresponsive.get(frame) != frame.url
        )

    async def _name_frames(self, entries: Iterable[list[Any]]) -> bool:
        """Store tokens on the elements of frames that have none.

        Parameters
        ----------
        entries
            `crossOrigin` of a script result: token, whether the frame is sandboxed, and its place.

        Returns
        -------
        bool
            Whether tokens were stored.
        """
        sandboxed = [is_sandboxed for token, is_sandboxed, _ in entries if token not in self._by_token]
        if not sandboxed:
            return False
        self._by_token = {token: frame for token, frame in self._by_token.items() if not frame.is_detached()}
        known = set(self._by_token.values())
        unnamed = [
            frame
            for frame in self._page.frames[1:]
            # The URL of a sandboxed frame does not show that its origin differs.
            if frame not in known and self._is_included(frame) and (any(sandboxed) or _has_other_origin(frame))
        ]
        await asyncio.gather(*(self._name_frame(frame) for frame in unnamed))
        return bool(unnamed)

    async def _name_frame(self, frame: Frame) -> None:
        token = uuid.uuid4().hex
        try:
            owner = await frame.frame_element()
            await owner.evaluate(_STORE_TOKEN, token)
            await owner.dispose()
        except PlaywrightError as error:
            log.debug("frames/gone %s: %s", frame.url, error)
            return
        self._by_token[token] = frame

    async def _merge(self, result: ScriptResult, function: str, options: Mapping[str, Any], depth: int = 1) -> bool:
        """Call the script in the frames of a result and merge theirs; return whether all must be called again."""
        if depth > MAX_DEPTH:
            return False
        places = [(place, self._frame_of(token)) for token, _, place in result["crossOrigin"]]
        included = [(place, frame) for place, frame in places if frame is not None]
        results = await asyncio.gather(
            *(self._call_inside(frame, place, function, options, depth) for place, frame in included)
        )
        inner = [(place, each.result) for (place, _), each in zip(included, results, strict=True)]
        if inner:
            result["digest"] = merge_digests(result["digest"], [each["digest"] if each else "" for _, each in inner])
        for place, each in reversed(inner):  # the last frame first: the numbers before it stay valid
            if each is not None:
                merge_activity(result, each)
                if function == "observe":
                    graft(result, each, place)
        return any(each.is_busy for each in results)

    async def _call_inside(
        self, frame: Frame, place: Mapping[str, Any] | None, function: str, options: Mapping[str, Any], depth: int
    ) -> _FrameResult:
        origin = {"origin": place["origin"]} if place else {}
        raw = None
        try:
            raw = await self.call(frame, function, {**options, **origin})
        except (PlaywrightError, BrowserFailure) as error:
            log.info("frames/no_answer %s: %s", frame.url, first_line(error))
        if raw is None:
            if not frame.is_detached():
                self._unresponsive[frame] = frame.url
            return _FrameResult(None, is_busy=frame.is_detached())
        result: ScriptResult = parse_script_result(raw)
        # Frames that get their token now are reported with their place by the next call only.
        again = bool(result["crossOrigin"]) and (
            await self._name_frames(result["crossOrigin"]) or await self._merge(result, function, options, depth + 1)
        )
        return _FrameResult(result, is_busy=again or result["settled"]["waited"])


def _has_other_origin(frame: Frame) -> bool:
    """Whether a frame has another origin than the document around it, judging by their URLs."""
    parent = frame.parent_frame
    url = urlsplit(frame.url)
    return url.scheme in {"http", "https"} and (
        parent is None or url[:2] != urlsplit(parent.url)[:2] or not parent.url.startswith(("http:", "https:"))
    )
