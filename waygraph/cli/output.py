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
from typing import Any

from pydantic import BaseModel

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


def say(text: object = "") -> None:
    """Print one cleaned line (or several) for people."""
    sys.stdout.write(f"{clean(text)}\n")


def warn(text: object) -> None:
    """Print a warning for people on stderr."""
    sys.stderr.write(f"warning: {clean(text)}\n")


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Print rows under headers in aligned columns, each cell one line of cleaned text; `right` names numeric columns.

    Rows are never cut or folded: what is printed can be searched and copied, whatever the width of the terminal.
    """
    from rich.cells import cell_len  # columns are counted as a terminal shows them: 你 takes two

    lines = [[clean(cell, one_line=True) for cell in row] for row in (headers, *rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        cells = []
        for header, cell, width in zip(headers, line, widths, strict=True):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if header in right else cell + space)
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def print_json(document: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Print one JSON document. Only ASCII is written: control characters of pages reach no terminal unescaped."""
    plain = document.model_dump(mode="json", by_alias=True) if isinstance(document, BaseModel) else document
    sys.stdout.write(json.dumps(plain, indent=2) + "\n")
