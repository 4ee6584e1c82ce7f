"""Text of web pages, models and servers: valid Unicode, of bounded length, and harmless on a terminal."""

from __future__ import annotations

import re
import unicodedata

#: Unicode categories of characters that a terminal may act on, or that reorder or hide text: controls (C0, C1, and with
#: them escape sequences), format characters (bidirectional, zero width), lone surrogates, line and paragraph
#: separators, and unassigned characters, of which nobody knows.
_CONTROLS = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def replace_surrogates(text: str) -> str:
    r"""Return `text` with U+FFFD in place of each lone surrogate.

    >>> ascii(replace_surrogates("cut \ud83d")), replace_surrogates("whole \U0001f60a") == "whole \U0001f60a"
    ("'cut \\ufffd'", True)
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shortened(text: str, length: int) -> str:
    """Return `text`, cut to at most `length` characters, the last of them an ellipsis if it was cut.

    >>> shortened("Annual report", 8)
    'Annual\u2026'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "\u2026"


def mask_numbers(text: str) -> str:
    """Return `text` with 0 in place of each number.

    >>> mask_numbers("12 left, 3.50 EUR")
    '0 left, 0 EUR'
    """
    return _NUMBER.sub("0", text)


def escape_controls(text: str) -> str:
    r"""Return `text` with an escape such as `\x1b` in place of each character that a terminal may act on.

    Line feeds and tabs stay.

    >>> print(escape_controls("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _CONTROLS and character not in "\n\t"
        else character
        for character in text
    )
