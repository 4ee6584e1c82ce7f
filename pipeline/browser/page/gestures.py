"""Pointer and keyboard gestures for each kind of action."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from playwright.async_api import Page

from waygraph.index.graph import Action

#: Position of the pointer over no element.
PARKED = (-1.0, -1.0)
#: Longest text that is typed key by key, in characters; each key takes three messages to the browser and its handlers.
MOST_KEYS = 200

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


def gesture_steps(page: Page, action: Action, x: float, y: float) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield what is to be awaited, in order, to perform an action.

    Parameters
    ----------
    page
        The page.
    action
        The action.
    x
        Position where its element takes the pointer, from the left of the window, in CSS pixels.
    y
        The same from the top. An element that is typed into has been focused by the in-page script.

    Yields
    ------
    Coroutine[Any, Any, None]
        Steps, each short enough for the limit of a gesture. A text is typed key by key; of one that is longer than
        `MOST_KEYS`, all but the last character is inserted at once.
    """
    if action.kind == "hover":
        yield page.mouse.move(x, y)
        if action.value == "away":
            yield page.mouse.move(*PARKED)
    elif action.kind in {"click", "dblclick", "contextmenu"}:
        if action.kind == "dblclick":
            yield page.mouse.dblclick(x, y)
        else:
            yield page.mouse.click(x, y, button="right" if action.kind == "contextmenu" else "left")
        yield page.mouse.move(*PARKED)
    elif action.kind == "press":
        yield page.keyboard.press(action.value)
    elif action.kind in {"input", "submit"}:
        yield from _typing_steps(page, action.value)
        if action.kind == "submit":
            yield page.keyboard.press("Enter")


def _typing_steps(page: Page, text: str) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield what is to be awaited to replace what is selected in a field."""
    if not text:
        yield page.keyboard.press("Delete")
    inserted = text[:-1] if len(text) > MOST_KEYS else ""
    if inserted:
        yield page.keyboard.insert_text(inserted)
    for character in text[len(inserted) :]:
        yield page.keyboard.type(character)
