"""How are answers shown? Tables for people, JSON for machines; nothing a page says can steer the terminal.

Page text is printed without markup and with every character removed that a terminal could act on: control characters
(C0, C1, with them escape sequences) and the invisible ones that reorder or hide text (bidirectional overrides, zero
width).
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from rich.console import Console

#: Control, format (bidirectional overrides, zero width), surrogate, private use, unassigned: none is visible text.
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: object, *, one_line: bool = False) -> str:
    r"""Return `text` without characters that a terminal could act on; newlines stay unless `one_line`.

    >>> clean("a\x1b[31mb\u202ec")
    'a[31mbc'
    """
    kept = "".join(
        character if unicodedata.category(character) not in _INVISIBLE or character == "\n" else _substitute(character)
        for character in str(text)
    )
    return " ".join(kept.split()) if one_line else kept


def _substitute(character: str) -> str:
    # Whitespace becomes a space, so that words do not grow together; everything else goes.
    return " " if character.isspace() else ""


@cache
def console() -> Console:
    """Return the terminal on stdout. It interprets nothing in what it prints."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def say(text: object = "") -> None:
    """Print one cleaned line (or several) for people."""
    sys.stdout.write(f"{clean(text)}\n")


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Print rows under headers, each cell on one line of cleaned text; columns named in `right` are right-aligned."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        numeric = header in right
        table.add_column(header, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean(cell, one_line=True)) for cell in row))
    console().print(table, soft_wrap=False)


def print_json(document: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Print one JSON document. Only ASCII is written: control characters of pages reach no terminal unescaped."""
    plain = document.model_dump(mode="json", by_alias=True) if isinstance(document, BaseModel) else document
    sys.stdout.write(json.dumps(plain, indent=2) + "\n")
