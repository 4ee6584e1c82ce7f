"""Pointer and keyboard gestures for each kind of action."""

from __future__ import annotations

from playwright.async_api import Page

from waygraph.index.graph import Action

#: Position of the pointer over no element.
PARKED = (-1.0, -1.0)

_TEXT_FIELDS = frozenset({"textbox", "searchbox", "combobox"})


def keeps_pointer(action: Action) -> bool:
    """Whether pointer or focus stay on the element while the result is observed.

    Menus that open on hover, and lists of suggestions, disappear without them.
    """
    if action.value == "away":
        return False
    return action.kind in {"hover", "focus", "press", "input", "submit"} or (
        action.kind == "click" and action.role in _TEXT_FIELDS
    )


async def perform_gesture(page: Page, action: Action, x: float, y: float) -> None:
    """Perform an action on an element that takes the pointer at (`x`, `y`), or that the in-page script has focused."""
    if action.kind == "hover":
        await page.mouse.move(x, y)
        if action.value == "away":
            await page.mouse.move(*PARKED)
    elif action.kind in {"click", "dblclick", "contextmenu"}:
        if action.kind == "dblclick":
            await page.mouse.dblclick(x, y)
        else:
            await page.mouse.click(x, y, button="right" if action.kind == "contextmenu" else "left")
        await page.mouse.move(*PARKED)
    elif action.kind == "press":
        await page.keyboard.press(action.value)
    elif action.kind in {"input", "submit"}:
        if action.value:
            await page.keyboard.type(action.value)
        else:
            await page.keyboard.press("Delete")  # what the field held is selected
        if action.kind == "submit":
            await page.keyboard.press("Enter")
