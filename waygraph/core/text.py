"""Text of web pages: valid Unicode, since JavaScript strings may hold lone surrogates, and of bounded length."""

from __future__ import annotations


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
