"""Output of commands: text, tables, JSON and files. Page text never controls the terminal.

Page text is printed without markup, and without every character that a terminal could act on: control characters (C0,
C1, and with them escape sequences) and invisible characters that reorder or hide text (bidirectional overrides,
zero-width characters).
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from waygraph.core.errors import InvalidInput, WaygraphError

#: Unicode categories without visible text: control, format (bidirectional overrides, zero width), surrogate, private
#: use, unassigned, line and paragraph separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: object, *, one_line: bool = False) -> str:
    r"""Return `text` without characters that a terminal could act on.

    Parameters
    ----------
    text
        Text, or an object to convert to text.
    one_line
        Also replace every run of white space by one space; otherwise newlines stay.

    Returns
    -------
    str
        The cleaned text.

    Examples
    --------
    >>> clean("a\x1b[31mb\u202ec")
    'a[31mbc'
    """
    kept = "".join(
        character if unicodedata.category(character) not in _INVISIBLE or character == "\n" else _substitute(character)
        for character in str(text)
    )
    return " ".join(kept.split()) if one_line else kept


def _substitute(character: str) -> str:
    # White space becomes a space, so that the words around it stay apart.
    return " " if character.isspace() else ""


def say(text: object = "") -> None:
    """Print cleaned text on stdout."""
    sys.stdout.write(f"{clean(text)}\n")


def warn(text: object) -> None:
    """Print a warning on stderr."""
    sys.stderr.write(f"warning: {clean(text)}\n")


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Print rows under headers in aligned columns.

    Rows are neither cut nor folded, so that the output can be searched and copied at every terminal width.

    Parameters
    ----------
    headers
        Names of the columns.
    rows
        Cells by column; each is printed as one line of cleaned text.
    right
        Names of the columns to align to the right.
    """
    from rich.cells import cell_len  # display width: 你 takes two columns

    lines = [[clean(cell, one_line=True) for cell in row] for row in (headers, *rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        cells = []
        for header, cell, width in zip(headers, line, widths, strict=True):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if header in right else cell + space)
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def print_json(document: BaseModel | dict[str, Any] | list[Any]) -> None:
    """Print one JSON document in ASCII, in which control characters of page text are escaped."""
    plain = document.model_dump(mode="json", by_alias=True) if isinstance(document, BaseModel) else document
    sys.stdout.write(json.dumps(plain, indent=2) + "\n")


def error_document(error: WaygraphError) -> dict[str, object]:
    """Return the JSON form of an error, as `--json` prints it."""
    return {
        "type": error.slug,
        "title": error.title,
        "message": error.message,
        "hint": error.hint,
        "exit_code": error.exit_code,
    }


def print_error(message: str, hint: str) -> None:
    """Print an error and its hint on stderr."""
    hint = f"\n  hint: {clean(hint)}" if hint else ""
    sys.stderr.write(f"error: {clean(message)}{hint}\n")


def write_file(file: Path, content: str | bytes, *, option: str) -> None:
    """Write the file that an option names.

    Parameters
    ----------
    file
        The file; it is replaced if it exists.
    content
        Bytes, or text to write as UTF-8.
    option
        Name of the option, for the error message.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    try:
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    except OSError as error:
        raise InvalidInput(f"Cannot write {file}: {error.strerror}.", hint=f"Choose another {option}.") from error
