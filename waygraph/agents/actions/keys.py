"""Names of keys, as Playwright takes them, from what models write."""

from __future__ import annotations

import re

_MODIFIERS = {
    "ctrl": "Control", "control": "Control", "shift": "Shift", "alt": "Alt", "option": "Alt", "meta": "Meta",
    "cmd": "Meta", "command": "Meta", "win": "Meta", "controlormeta": "ControlOrMeta",
}  # fmt: skip
_KEYS = (
    "Enter", "Tab", "Escape", "Backspace", "Delete", "Insert", "Home", "End", "PageUp", "PageDown", "Space", "ArrowUp",
    "ArrowDown", "ArrowLeft", "ArrowRight", *(f"F{n}" for n in range(1, 13)), "CapsLock", "ContextMenu",
)  # fmt: skip
_ALIASES = {
    "return": "Enter", "esc": "Escape", "del": "Delete", "up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft",
    "right": "ArrowRight", "spacebar": "Space", " ": "Space", "plus": "+", "pgup": "PageUp", "pgdn": "PageDown",
    **{key.lower(): key for key in _KEYS},
}  # fmt: skip
_SEPARATOR = re.compile(r"\+(?=.)")


def key_name(written: str) -> str:
    """Return the name of a key, or of a combination such as `Control+a`.

    >>> key_name("ctrl+shift+k"), key_name("esc"), key_name("arrow_down"), key_name("é")
    ('Control+Shift+k', 'Escape', 'ArrowDown', 'é')

    Parameters
    ----------
    written
        What a model wrote.

    Returns
    -------
    str
        The name that Playwright knows.

    Raises
    ------
    ValueError
        If there is no such key.
    """
    *modifiers, key = _SEPARATOR.split(written if written == " " else written.strip())
    names = [_MODIFIERS.get(modifier.strip().lower(), "") for modifier in modifiers]
    plain = key.lower().replace("_", "").replace("-", "") or key
    name = key if len(key) == 1 and key.isprintable() and key != " " else _ALIASES.get(key if key == " " else plain, "")
    name = name or (_MODIFIERS.get(plain, "") if not modifiers else "")
    if not name or not all(names):
        raise ValueError(f"'{written}' is not a key; keys are single characters, Enter, Escape, ArrowDown, Control+a")
    return "+".join([*names, name])
