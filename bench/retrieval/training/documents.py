"""Read pages of documentation: HTML, and Mallard (the help pages of GNOME), as segments and links.

Segments have the roles that the explorer gives them, so `waygraph.pipeline.encode.text.composites` makes the same
texts of them as of a page in a browser. Nothing is laid out: hidden text is read like visible text.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from waygraph.pipeline.encode.text_counts import clean

#: Elements that carry no text of the page.
_SILENT = frozenset({"script", "style", "noscript", "template", "svg", "math", "credit", "revision", "license"})
#: Elements within a line of text. All others end the text before them.
_INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "dfn", "em", "font", "i", "input", "ins"),
        *("kbd", "mark", "output", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u"),
        *("app", "cmd", "email", "file", "gui", "guiseq", "key", "keyseq", "link", "media", "sys", "var"),
    )
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_ROLES = {**dict.fromkeys(_HEADINGS, "heading"), "th": "columnheader", "a": "link", "button": "button"}


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another file of the package.

    Attributes
    ----------
    target
        Path of the file within the package.
    text
        What the link says.
    heading
        The heading above it; empty if there is none.
    sentence
        The block of text that it is part of, itself included.
    """

    target: str
    text: str
    heading: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Document:
    """What one file says.

    Attributes
    ----------
    path
        Path within the package.
    title
        Title of the document.
    description
        Its summary, which is not shown on the page; empty if it has none.
    segments
        Texts in order, each with its role.
    links
        Links to other files.
    """

    path: str
    title: str
    description: str
    segments: tuple[tuple[str, str], ...]
    links: tuple[Link, ...]


def read_document(path: str, source: str) -> Document:
    """Read a file of HTML, or of Mallard if its name ends so.

    >>> page = read_document("a/x.html", "<title>Log in</title><h1>Log in</h1><p>See <a href='../b.html'>Users</a>.")
    >>> page.title, page.segments[0], page.links[0].target, page.links[0].sentence
    ('Log in', ('Log in', 'heading'), 'b.html', 'See Users.')
    """
    reader = _Reader(path, mallard=path.endswith(".page"))
    reader.feed(source)
    reader.close()
    reader.end_block()
    return Document(path, clean(reader.title), clean(reader.description), tuple(reader.segments), tuple(reader.links))


@dataclass(slots=True)
class _Run:
    """Consecutive text of one role, and where it leads."""

    role: str
    target: str = ""
    texts: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    """Collects text by blocks; a link within a block is a segment of its own, as in the explorer's snapshots."""

    def __init__(self, path: str, *, mallard: bool) -> None:
        super().__init__()
        self._path = path
        self._mallard = mallard
        self._silent = 0
        self._open: list[str] = []
        self._runs = [_Run("text")]
        self._heading = ""
        self.title = ""
        self.description = ""
        self.segments: list[tuple[str, str]] = []
        self.links: list[Link] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in _SILENT:
            self._silent += 1
        elif tag == "meta" and attributes.get("name", "").lower() == "description":
            self.description = attributes.get("content", "")
        elif tag in {"title", "desc"} and not (tag == "title" and self.title):
            self._open.append(tag)
        if tag not in _INLINE:
            self.end_block()
        role = "heading" if self._mallard and tag == "title" else _ROLES.get(tag)
        if role == "link" or (self._mallard and tag == "link"):
            self._runs.append(_Run("link", self._target(attributes.get("href") or attributes.get("xref") or "")))
        elif role:
            self._runs = [_Run(role)]

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        if self._open and self._open[-1] == tag:
            self._open.pop()
        if tag not in _INLINE:
            self.end_block()
        elif self._runs[-1].role == "link" and tag in {"a", "link"}:
            self._runs.append(_Run(self._runs[0].role))

    @override
    def handle_data(self, data: str) -> None:
        where = self._open[-1] if self._open else ""
        if self._silent:
            return
        if where == "title":
            self.title += data
            if not self._mallard:
                return
        if where == "desc":
            self.description += data
            return
        self._runs[-1].texts.append(data)

    def end_block(self) -> None:
        """Turn what was read since the last block into segments and links."""
        runs, self._runs = self._runs, [_Run("text")]
        sentence = clean("".join(text for run in runs for text in run.texts))
        if runs[0].role == "heading" and sentence:
            self._heading = sentence
        for run in runs:
            # Permalinks of Sphinx and others.
            if text := clean("".join(run.texts)).strip("\u00b6# "):
                self.segments.append((text, run.role))
                if run.target:
                    self.links.append(Link(run.target, text, self._heading, sentence))

    def _target(self, reference: str) -> str:
        """Return the path of another file that a reference leads to; empty if it leads elsewhere."""
        if self._mallard:
            name = reference.partition("#")[0]
            return posixpath.join(posixpath.dirname(self._path), f"{name}.page") if name else ""
        parts = urlsplit(reference)
        if parts.scheme or parts.netloc or not parts.path:
            return ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(self._path), unquote(parts.path)))
        return "" if target == self._path or target.startswith("..") else target
