"""Recorded actions on a page: find the element, then use pointer or keyboard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from msgspec import structs
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Frame, Page

from waygraph.core.settings import BrowserSettings
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.cross_origin_frames import CrossOriginFrames
from waygraph.pipeline.browser.page.evaluate import PageEvaluator, parse_script_result
from waygraph.pipeline.browser.page.failures import FailureKind, NotActionable, PageFailure
from waygraph.pipeline.browser.page.gestures import PARKED, gesture_steps, keeps_pointer
from waygraph.pipeline.browser.page.observer import PageObserver
from waygraph.pipeline.browser.page.script import WAYGRAPH
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions

log = logging.getLogger(__name__)

#: Awaited with the URL of a link before the action on it.
BeforeLeaving = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PerformedAction:
    """An action that was performed.

    Attributes
    ----------
    rung
        Rung of the ladder that found the element: `exact`, `role`, `xpath` or `css`; `page` for a key without element.
    new_tab
        Whether the element is a link meant for a new tab, which a guarded page opens in its own.
    handled
        Whether a script listens for the event, at the element or an ancestor, or the browser itself reacts to it; true
        if that is not known.
    scripted
        Whether a script listens for the event, for the pointer or the focus there, or for the submission of the form;
        true if that is not known.
    """

    rung: str
    new_tab: bool
    handled: bool = True
    scripted: bool = True


class PageActor:
    """Performs actions in one page. Not safe for concurrent use.

    Parameters
    ----------
    page
        The page.
    evaluator
        Evaluates scripts in the page.
    frames
        Cross-origin frames of the page.
    observer
        Waits for canvases that react to the pointer.
    options
        Which elements are candidates, as in the snapshots.
    settings
        Timeouts.
    """

    def __init__(
        self,
        page: Page,
        evaluator: PageEvaluator,
        frames: CrossOriginFrames,
        observer: PageObserver,
        options: SnapshotOptions,
        *,
        settings: BrowserSettings,
    ) -> None:
        self._page = page
        self._evaluator = evaluator
        self._frames = frames
        self._observer = observer
        self._options = options
        self._gesture_timeout_s = settings.action_timeout_ms / 1000
        self.is_hovering = False
        """Whether pointer or focus rest on an element."""

    async def perform(
        self, action: Action, before_leaving: BeforeLeaving | None = None, *, reverts: bool = False
    ) -> PerformedAction:
        """Perform a recorded action, see `PageView.perform`."""
        try:
            if action.is_page_key:
                return await self._press_page_key(action.value)
            found, frame = await self._find(action, notes=not reverts)
            if frame is not None or self._frames.known:
                await self._frames.note_action(self._page.main_frame)
            if before_leaving is not None and action.target.startswith(("http:", "https:")):
                await before_leaving(action.target)
            self.is_hovering = keeps_pointer(action)
            if found.get("hasCanvas"):
                self._observer.has_canvas = True
                # The reaction of a chart depends on what it has drawn under the pointer.
                await self._observer.wait_until_drawn()
            if frame is not None and "x" in found:
                await self._frames.move_pointer(frame, found["x"], found["y"])
            if not found.get("isSet"):
                await self.make_gesture(action, found.get("x", 0.0), found.get("y", 0.0))
                if action.kind == "input":
                    await self._dispatch_change(frame)
            elif action.kind == "submit":
                await self.make_gesture(structs.replace(action, kind="press", value="Enter"), 0.0, 0.0)
        except PlaywrightError as error:
            raise PageFailure.of(error, f"{action} on {self._page.url}") from error
        return PerformedAction(found["rung"], found["newTab"], found.get("handled", True), found.get("scripted", True))

    async def make_gesture(self, action: Action, x: float = 0.0, y: float = 0.0) -> None:
        """Make the gesture of an action at a point, and continue if the browser does not confirm it in time.

        It does not confirm it when the document goes away. The next snapshot shows whether the page still responds.
        """
        try:
            for step in gesture_steps(self._page, action, x, y):
                await asyncio.wait_for(step, self._gesture_timeout_s)
        except TimeoutError:
            log.info("view/gesture_unanswered %s", self._page.url)

    async def _press_page_key(self, key: str) -> PerformedAction:
        if self._frames.known:
            await self._frames.note_action(self._page.main_frame)
        await self.press_key(key)
        return PerformedAction("page", new_tab=False)

    async def press_banner_button(self, action: Action) -> None:
        """Press the button of a cookie banner.

        Parameters
        ----------
        action
            The action of the banner.

        Raises
        ------
        NotActionable
            If the button is missing or takes no pointer.
        PlaywrightError
            If the page went away.
        """
        found, _ = await self._find(action)
        await self.make_gesture(action, found["x"], found["y"])

    async def press_key(self, key: str) -> None:
        """Press a key, with no element focused."""
        self.is_hovering = False
        await self._evaluator.with_timeout(self._page.keyboard.press(key))

    async def go_back(self) -> None:
        """Go back in the history of the page, within its document."""
        await self._evaluator.evaluate("() => history.back()", None)

    async def scroll(self, direction: str, action: Action | None) -> bool:
        """Scroll the page, or the box around the element of an action, see `PageView.scroll`."""
        try:
            raw = await self._call_script(
                "scroll", direction, action.to_json() if action else None, self._options.to_js()
            )
        except PlaywrightError as error:
            raise PageFailure.of(error, self._page.url) from error
        result = parse_script_result(raw) if raw is not None else {"rung": "", "moved": False}
        if not result["rung"]:
            raise NotActionable(f"{action or 'The page'} is not on {self._page.url}.", FailureKind.ELEMENT_MISSING)
        return bool(result["moved"])

    async def park_pointer(self) -> None:
        """Move the pointer away from every element."""
        self.is_hovering = False
        await self._evaluator.with_timeout(self._page.mouse.move(*PARKED))

    async def _find(self, action: Action, *, notes: bool = False) -> tuple[dict[str, Any], Frame | None]:
        """Find the recorded element.

        Parameters
        ----------
        action
            The recorded action.
        notes
            Whether the page notes what it has before the action, see `WaysBack`.

        Returns
        -------
        tuple
            The result of `find` in `js/find.js`: the `rung` that found the element, its point (`x`, `y`), whether it
            opens a `newTab`. And the innermost cross-origin frame that contains the element, if any.

        Raises
        ------
        NotActionable
            If the element is missing or takes no pointer.
        PageFailure
            If the document was replaced meanwhile.
        """
        options = {**self._options.to_js(hovering=self.is_hovering), "notes": notes}
        found, frames = await self._frames.find(action, options, self._call_script)
        if found is None:
            message = f"{self._page.url} was replaced before {action} could be performed."
            raise PageFailure(message, FailureKind.DOCUMENT_REPLACED)
        if not found.get("rung"):
            raise NotActionable(f"{action} is not on {self._page.url}.", FailureKind.ELEMENT_MISSING)
        if "obstacle" in found:
            kind, description = found["obstacle"]
            message = f"{action} on {self._page.url} takes no pointer: {description}."
            raise NotActionable(message, FailureKind(kind))
        return found, frames[-1] if frames else None

    async def _call_script(self, function: str, *arguments: object) -> str | None:
        expression = f"given => {WAYGRAPH}?.{function}(...given) ?? null"
        raw: str | None = await self._evaluator.evaluate(expression, list(arguments))
        return raw

    async def _dispatch_change(self, frame: Frame | None) -> None:
        """Dispatch the `change` event of a field, which browsers dispatch only when the field loses the focus."""
        if frame is not None:
            await self._frames.call(frame, "dispatchChange")
        else:
            await self._evaluator.evaluate(f"() => {WAYGRAPH}?.dispatchChange()", None)
