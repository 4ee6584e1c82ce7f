"""Text of web pages as valid Unicode: JavaScript strings may hold lone surrogates, which UTF-8 cannot encode."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    r"""Return `text` with U+FFFD in place of each lone surrogate.

    >>> ascii(replace_surrogates("cut \ud83d")), replace_surrogates("whole \U0001f60a") == "whole \U0001f60a"
    ("'cut \\ufffd'", True)
    """
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
