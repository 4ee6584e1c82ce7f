"""One sitemap or feed, read from its bytes: sitemap, index, RSS, Atom, plain text, or a description of a search.

Formats: https://www.sitemaps.org/protocol.html, RSS 2.0, RSS 1.0, RFC 4287 (Atom), OpenSearch 1.1. The reader streams:
it holds what a file lists and one piece of the file. `ultimate-sitemap-parser` (1.8.1) was tried first. It fetches
synchronously and recursively, keeps whole files and the tree of all of them in memory, recognises gzip by the name of a
file, and its limits of size and depth cannot be set.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Literal
from urllib.parse import urljoin, urlsplit
from xml.parsers import expat

from waygraph.pipeline.browser.page.linked_data import search_name, without_parameters
from waygraph.pipeline.explore.records.listing import ListedPage
from waygraph.pipeline.explore.sitemap.dates import parse_date

#: Limits of one file, those of the protocol.
MAX_BYTES, MAX_URLS = 50 * 2**20, 50_000
#: Longer URLs are left out: requests of the HTTP API cannot contain them.
MAX_URL = 8_192
#: Characters of a name.
_MAX_NAME = 300
_GZIP, _GZIP_WINDOW = b"\x1f\x8b", zlib.MAX_WBITS | 16
#: Bytes that the XML parser, and those that the decompression gets at once.
_PIECE, _INPUT = 2**20, 2**16
#: A compressed file that a server sends compressed has two layers. A file may have several members; each costs time.
_MAX_LAYERS, _MAX_MEMBERS = 2, 1_000
_MAX_DEPTH = 64
_ITEMS = frozenset({"url", "sitemap", "item", "entry", "Url"})
_ROOTS = frozenset({"urlset", "sitemapindex", "rss", "RDF", "feed", "OpenSearchDescription"})
_DATES = frozenset({"lastmod", "pubDate", "date", "updated", "published"})
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_TEXT_FIELDS = _DATES | {"loc", "link", "title"}

#: Why a file was not read to its end: it is none of the known formats (often an HTML page), it declares a document
#: type (which may declare entities that expand without bounds), it is not well-formed, or a limit was reached.
Problem = Literal["", "no_sitemap", "doctype", "malformed", "too_large", "too_many"]


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """What a file lists, in its order, as far as it was read.

    Attributes
    ----------
    pages
        Pages.
    alternates
        URLs of the same pages in other languages (`hreflang`), which may be listed as pages too.
    files
        URLs of further sitemaps.
    problem
        Why the rest was not read; empty if there is none.
    """

    pages: tuple[ListedPage, ...] = ()
    alternates: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    problem: Problem = ""


def read_sitemap(content: bytes, url: str, *, max_bytes: int = MAX_BYTES, max_urls: int = MAX_URLS) -> SitemapFile:
    """Read a file. Nothing is raised, whatever it contains.

    Parameters
    ----------
    content
        The file, plain or compressed with gzip.
    url
        Its URL, for relative addresses.
    max_bytes
        Bytes that are read, uncompressed.
    max_urls
        URLs that are read.

    Returns
    -------
    SitemapFile
        What was listed before the first problem.
    """
    listing = _Listing(url, max_urls)
    problem: Problem = ""
    try:
        pieces = _plain(content, max_bytes)
        first = next(pieces, b"").lstrip()  # A server's scripts may print line breaks before the declaration.
        if first.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" or first[:2] in {b"\xff\xfe", b"\xfe\xff"}:
            listing.read_xml(first, pieces)
        else:
            listing.read_text(first, pieces)
    except _Stopped as stop:
        problem = stop.problem
    return SitemapFile(tuple(listing.pages), tuple(listing.alternates), tuple(listing.files), problem)


class _Stopped(Exception):
    """The rest of a file is not read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem: Problem = problem


def _plain(content: bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield a file uncompressed, in pieces. Gzip is recognised by its first bytes: names and headers often lie."""
    pieces: Iterator[bytes] = (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
    for _ in range(_MAX_LAYERS):
        first = next(pieces, b"")
        pieces = _chained(first, pieces)
        if not first.startswith(_GZIP):
            break
        pieces = _bounded(_gunzipped(pieces), max_bytes)
    yield from _bounded(pieces, max_bytes)


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _bounded(pieces: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    left = max_bytes
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left < 0:
            raise _Stopped("too_large")


def _gunzipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the content of a gzip file, which may have several members. What a cut-off file holds is yielded."""
    inflate, members = zlib.decompressobj(_GZIP_WINDOW), 1
    for piece in pieces:
        for at in range(0, len(piece), _INPUT):
            rest, found = piece[at : at + _INPUT], b""
            while rest or len(found) == _PIECE:
                try:
                    found = inflate.decompress(rest, _PIECE)
                except zlib.error as error:
                    raise _Stopped("malformed") from error
                yield found
                rest = inflate.unconsumed_tail
                if inflate.eof and (rest := inflate.unused_data.lstrip(b"\0")):
                    inflate, members = zlib.decompressobj(_GZIP_WINDOW), members + 1
                    if members > _MAX_MEMBERS:
                        raise _Stopped("malformed")


class _Listing:
    """What a file lists, collected while it is read.

    Parameters
    ----------
    base
        URL of the file.
    max_urls
        URLs after which the reading ends.
    """

    def __init__(self, base: str, max_urls: int) -> None:
        self._base = base
        self._left = max_urls
        self.pages: list[ListedPage] = []
        self.alternates: list[str] = []
        self.files: list[str] = []
        self._depth = self._item_depth = 0
        self._item = ""
        self._fields: dict[str, str] = {}
        self._text: list[str] | None = None
        """Pieces of the text of the element that is read; None if its text is not needed."""
        self._search = ListedPage("")

    # ---- text ----------------------------------------------------------------------------------------------------

    def read_text(self, first: bytes, rest: Iterator[bytes]) -> None:
        """Read a list of absolute URLs, one in each line."""
        line, is_first = b"", True
        for piece in _chained(first, rest):
            *lines, line = (line + piece).replace(b"\r", b"\n").split(b"\n")
            for each in lines:
                is_first = self._add_line(each, is_first=is_first)
            if len(line) > MAX_URL:
                raise _Stopped("malformed" if self.pages else "no_sitemap")
        self._add_line(line, is_first=is_first)

    def _add_line(self, line: bytes, *, is_first: bool) -> bool:
        """Add a line. Return whether the next one is the first that is not empty."""
        url = line.decode("utf-8-sig", errors="replace").strip()
        if not url:
            return is_first
        if url.lower().startswith(("http://", "https://")) and " " not in url:
            self._add_page({"loc": url})
        elif is_first:
            raise _Stopped("no_sitemap")
        return False

    # ---- XML -----------------------------------------------------------------------------------------------------

    def read_xml(self, first: bytes, rest: Iterator[bytes]) -> None:
        """Read an XML document. One with a document type is refused, so no entity is ever declared."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        try:
            for piece in _chained(first, rest):
                parser.Parse(piece, False)
            parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            # LookupError and ValueError: the document names an encoding that is unknown or no encoding of characters.
            raise _Stopped("malformed" if self._depth else "no_sitemap") from error
        finally:
            # The handlers refer to the parser's owner.
            parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None
            parser.StartDoctypeDeclHandler = None
        if self._search.url:
            self.pages.append(ListedPage(self._search.url, search_name(self._search.name)))

    def _refuse_doctype(self, name: str, *_: object) -> None:
        raise _Stopped("no_sitemap" if name.lower() == "html" else "doctype")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        space, _, name = tag.rpartition(" ")
        if not self._depth and name not in _ROOTS:
            raise _Stopped("no_sitemap")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _Stopped("malformed")
        self._text = None
        if not self._item and name in _ITEMS:
            self._item, self._item_depth, self._fields = name, self._depth, {}
            if name == "Url":
                self._add_search(attributes)
        elif name == "ShortName" and self._depth == 2:
            self._text = []
        elif self._item:
            self._start_field(name, space, attributes)

    def _start_field(self, name: str, space: str, attributes: dict[str, str]) -> None:
        is_child = self._depth == self._item_depth + 1
        if name == "link" and self._item == "url":
            if "alternate" in attributes.get("rel", "").split() and "hreflang" in attributes:
                self._count()
                self._append(self.alternates, attributes.get("href", ""))
        elif name == "link" and "href" in attributes:
            if is_child and attributes.get("rel", "alternate") == "alternate":
                self._fields.setdefault("link", attributes["href"])
        elif (is_child and name in _TEXT_FIELDS) or (name == "title" and "news" in space):
            self._text = []

    def _add_text(self, text: str) -> None:
        if self._text is not None and len(self._text) < MAX_URL:
            self._text.append(text[: MAX_URL + 1])

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if self._text is not None:
            text = "".join(self._text)[: MAX_URL + 1].strip()
            if name == "ShortName":
                self._search = ListedPage(self._search.url, text[:_MAX_NAME])
            elif text:
                self._fields.setdefault(name, text)
            self._text = None
        if self._item and self._depth == self._item_depth:
            if self._item == "sitemap":
                self._count()
                self._append(self.files, self._fields.get("loc", ""))
            elif self._item != "Url":
                self._add_page(self._fields)
            self._item = ""
        self._depth -= 1

    # ---- results -------------------------------------------------------------------------------------------------

    def _add_search(self, attributes: dict[str, str]) -> None:
        """Note the page of an OpenSearch description: its template without the words."""
        is_page = attributes.get("type") == "text/html" and attributes.get("method", "get").lower() == "get"
        if is_page and not self._search.url and (url := self._resolved(attributes.get("template", ""))):
            self._search = ListedPage(without_parameters(url), self._search.name)

    def _add_page(self, fields: dict[str, str]) -> None:
        self._count()
        url = self._resolved(fields.get("loc") or fields.get("link", ""))
        if url:
            dates = (parse_date(fields[name]) for name in _DATES if name in fields)
            # Titles of feeds are often HTML (RFC 4287, section 3.1.1.2).
            name = " ".join(unescape(_TAG.sub("", fields.get("title", ""))).split())[:_MAX_NAME]
            self.pages.append(ListedPage(url, name, max(dates, default="")))

    def _append(self, urls: list[str], address: str) -> None:
        if url := self._resolved(address):
            urls.append(url)

    def _count(self) -> None:
        """Count a URL before it is added."""
        if not self._left:
            raise _Stopped("too_many")
        self._left -= 1

    def _resolved(self, address: str) -> str:
        """Return an address as an absolute URL of a page; empty if it is none."""
        try:
            url = address if "://" in address[:9] else urljoin(self._base, address) if address else ""
            parts = urlsplit(url)
            is_page = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            return ""
        return url if is_page and len(url) <= MAX_URL else ""
