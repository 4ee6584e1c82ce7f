"""Self-contained HTML pages: texts are escaped, scripts are disabled, nothing is loaded."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222;
  background: #fff; overflow-wrap: anywhere; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 0; min-width: 0; } figcaption { color: #666; } code { color: #666; }
"""


def render_page(title: str, body: str, *, style: str = "") -> str:
    """Return a whole document.

    Parameters
    ----------
    title
        Plain text.
    body
        HTML with escaped texts.
    style
        Additional CSS rules.

    Returns
    -------
    str
        HTML.
    """
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}{style}</style>'
        f"<h1>{escape(title)}</h1>{body}</html>\n"
    )


def render_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Collection[str] = ()) -> str:
    """Return a table.

    Parameters
    ----------
    headers
        Plain texts.
    rows
        Cells, shown as plain text.
    right
        Headers of right-aligned columns.

    Returns
    -------
    str
        HTML.
    """
    marks = ['class="number"' if header in right else "" for header in headers]
    head = "".join(f"<th {mark}>{escape(header)}</th>" for header, mark in zip(headers, marks, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td {mark}>{escape(str(cell))}</td>" for cell, mark in zip(row, marks, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def data_url(content: bytes) -> str:
    """Return a JPEG or PNG as a data URL."""
    kind = "png" if content.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
