"""What do pointer and keyboard do for each kind of action?"""

from __future__ import annotations

from playwright.async_api import Page

from index.graph import Action

#: Where the pointer rests when it is over nothing.
PARKED = (-1.0, -1.0)

_TEXT_FIELDS = frozenset({"textbox", "searchbox", "combobox"})


def holds(action: Action) -> bool:
    """Whether pointer or focus stay on the element while what the action led to is looked at.

    Menus that open on hover, and lists of suggestions, are there only as long as they do.
    """
    if action.value == "away":
        return False
    return action.kind in {"hover", "focus", "press", "input", "submit"} or (
        action.kind == "click" and action.role in _TEXT_FIELDS
    )


async def make_gesture(page: Page, action: Action, x: float, y: float) -> None:
    """Perform an action on an element that takes the pointer at (`x`, `y`), or that the page has focused already."""
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
        await page.keyboard.type(action.value)
        if action.kind == "submit":
            await page.keyboard.press("Enter")
