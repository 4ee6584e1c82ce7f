"""Rows of a JSON list or of JSON lines, each with the number of its first line.

A list is decoded row by row, so that a row that is not JSON leaves those before it readable and is named by its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JsonRow:
    """A row of a file.

    Attributes
    ----------
    line
        Number of its first line, from 1.
    value
        The decoded value.
    problem
        Why there is no value; empty: there is one.
    """

    line: int
    value: object = None
    problem: str = ""


def json_rows(text: str) -> Iterator[JsonRow]:
    """Yield the rows of a text: the items of one JSON list, or else of JSON lines.

    Parameters
    ----------
    text
        Contents of a file.

    Yields
    ------
    JsonRow
        Rows in the order of the text. In a list, what follows a row that is not JSON cannot be read, and that row is
        the last one.
    """
    start = _skip_space(text, 0)
    if text[start : start + 1] == "[":
        yield from _list_rows(text, start + 1)
    else:
        yield from _line_rows(text)


def _list_rows(text: str, at: int) -> Iterator[JsonRow]:
    line, counted = 1, 0
    at = _skip_space(text, at)
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            at_line = error.lineno if isinstance(error, json.JSONDecodeError) else line
            yield JsonRow(at_line, problem=f"{_reason(error)}; rows from here on cannot be read")
            return
        yield JsonRow(line, value)
        at = _skip_space(text, at)
        if text[at : at + 1] == ",":
            at = _skip_space(text, at + 1)
        elif text[at : at + 1] != "]":
            ends = line + text.count("\n", counted, at)
            yield JsonRow(ends, problem="not JSON (no comma or end of the list); rows from here on cannot be read")
            return


def _line_rows(text: str) -> Iterator[JsonRow]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield JsonRow(number, json.loads(line))
        except (ValueError, RecursionError) as error:
            yield JsonRow(number, problem=_reason(error))


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg})"
    # A number of thousands of digits is JSON, and no number of Python.
    return "nested too deeply" if isinstance(error, RecursionError) else "a number that is too long"


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
