"""Which texts of pages can be written down? JavaScript strings may hold halves of characters, which UTF-8 cannot."""

from __future__ import annotations


def spellable(text: str) -> str:
    r"""`text` with U+FFFD in place of what UTF-8 cannot spell (lone surrogates).

    >>> ascii(spellable("cut \ud83d")), spellable("whole \U0001f60a") == "whole \U0001f60a"
    ("'cut \\ufffd'", True)
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
