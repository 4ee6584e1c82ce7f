"""How is a page written that shows what web sites said, and loads nothing? Texts are escaped, scripts are off."""

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


def page(title: str, body: str, *, style: str = "") -> str:
    """A whole document.

    Parameters
    ----------
    title : as text.
    body : as HTML, whose texts are escaped already.
    style : rules besides those that all pages have.

    """
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}{style}</style>'
        f"<h1>{escape(title)}</h1>{body}</html>\n"
    )


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Collection[str] = ()) -> str:
    """Rows under headers; `right` names columns of numbers."""
    marks = ['class="number"' if header in right else "" for header in headers]
    head = "".join(f"<th {mark}>{escape(header)}</th>" for header, mark in zip(headers, marks, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td {mark}>{escape(str(cell))}</td>" for cell, mark in zip(row, marks, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def inlined(content: bytes) -> str:
    """A JPEG or PNG as an address that holds it."""
    kind = "png" if content.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
