"""Ways back from an action within its document, see `js/revert.js`. Callers check whether the page is back."""

from __future__ import annotations

import json

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.actor import PageActor
from waygraph.pipeline.browser.page.evaluate import PageEvaluator
from waygraph.pipeline.browser.page.script import WAYGRAPH


class WaysBack:
    """Gestures with which a person leaves what the last action of a page opened, typed or chose.

    What the page had before is known in guarded pages only, and only for actions in documents of the page's own origin.

    Parameters
    ----------
    evaluator
        Evaluates scripts in the page.
    actor
        Makes the gestures.
    """

    def __init__(self, evaluator: PageEvaluator, actor: PageActor) -> None:
        self._evaluator = evaluator
        self._actor = actor

    async def leave_element(self) -> None:
        """Move the pointer, and the focus with the next wait, away from the element."""
        # A pointer that leaves the window moves over nothing that reports an action, and tips stay for a moment.
        await self._call("noteAction")
        await self._actor.park_pointer()

    async def go_back(self) -> None:
        """Go back in the history of the page, within its document."""
        await self._actor.go_back()

    async def press_escape(self) -> None:
        """Press Escape where the action had left the focus."""
        await self._call("refocus")
        await self._actor.press_key("Escape")

    async def refill(self) -> bool:
        """Put back what a field or a list held. Return False if that is not possible."""
        content = json.loads(await self._call("refill") or "null")
        if content is None or "obstacle" in content:
            return False
        self._actor.is_hovering = False
        if not content.get("isSet"):
            await self._actor.make_gesture(Action("input", value=content["value"]))
        return True

    async def click_outside(self) -> bool:
        """Click where nothing reacts but to a click outside. Return False if there is no such point."""
        point = json.loads(await self._call("pointOutside") or "null")
        if point is None:
            return False
        self._actor.is_hovering = False
        await self._actor.make_gesture(Action("click"), point["x"], point["y"])
        return True

    async def previous_choice(self) -> str:
        """Return the full XPath of the tab, or what else was chosen before the action; empty if that is not known."""
        return await self._call("previousChoice") or ""

    async def restore_storage(self) -> None:
        """Put back what local and session storage held, unless that was too much to be copied."""
        await self._call("restoreStorage")

    async def _call(self, function: str) -> str | None:
        result: str | None = await self._evaluator.evaluate(f"() => {WAYGRAPH}?.{function}() ?? null", None)
        return result
