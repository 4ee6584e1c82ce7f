"""Words of a URL, as text to encode."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

_EXTENSION = re.compile(r"\.(?:html?|php|aspx?|jsp|cgi|do)$", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\d+|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def url_words(url: str) -> str:
    """Return the words of path, query string and fragment, without numbers, identifiers and file endings.

    The root of a site has no words and is called "home page".

    >>> url_words("https://x.org/admin/productEdit/17?tab=stock-levels"), url_words("https://x.org/")
    ('admin product Edit tab stock levels', 'home page')
    """
    parts = urlsplit(url)
    pieces = [_EXTENSION.sub("", piece) for piece in unquote(parts.path).split("/")]
    for key, value in parse_qsl(parts.query):
        pieces += [key, value]
    pieces.append(unquote(parts.fragment))
    words = [
        word
        for piece in pieces
        if not _IDENTIFIER.fullmatch(piece)
        for run in _WORD.findall(piece)
        if not _IDENTIFIER.fullmatch(run)
        for word in _CAMEL.split(run)
    ]
    return " ".join(words) or "home page"
