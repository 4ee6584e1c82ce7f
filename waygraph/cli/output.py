"""Output of commands: text, tables, JSON and files. Text of a page, model, store or server never controls the terminal.

It is printed without markup, and what a terminal could act on is escaped (`escape_controls`). JSON is ASCII, in which
JSON itself escapes those characters, and loses nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from waygraph.core.errors import InvalidInput, WaygraphError
from waygraph.core.text import escape_controls


def clean(text: object, *, one_line: bool = False) -> str:
    r"""Return `text` without characters that a terminal could act on.

    Parameters
    ----------
    text
        Text, or an object to convert to text.
    one_line
        Also replace every run of white space by one space; otherwise line feeds and tabs stay.

    Returns
    -------
    str
        The text, with escapes in place of other control characters.

    Examples
    --------
    >>> clean("a\x1b[31mb \u202ec\r\n", one_line=True)
    'a\\x1b[31mb \\u202ec'
    """
    return escape_controls(" ".join(str(text).split()) if one_line else str(text))


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
