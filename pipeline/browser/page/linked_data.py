"""Pages that a page names in its JSON-LD (https://schema.org): breadcrumbs above it, and the search of its site."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from waygraph.core.text import replace_surrogates

#: Objects that are looked at, names and URLs that are kept, and characters of each.
_MAX_OBJECTS, _MAX_PAGES, _MAX_NAME, _MAX_URL = 2_000, 20, 300, 8_192
_TEMPLATE_PARAMETER = re.compile(r"\{[^{}]*\}")


def named_pages(documents: Iterable[str], base: str) -> tuple[tuple[str, str], ...]:
    """Return the pages that JSON-LD documents name, each URL once.

    Parameters
    ----------
    documents
        Contents of `<script type="application/ld+json">`. What is no JSON is skipped.
    base
        URL of the page.

    Returns
    -------
    tuple[tuple[str, str], ...]
        URL and name of each page: the items of a `BreadcrumbList`, and the `SearchAction` of a `WebSite` without words.
    """
    found: dict[str, str] = {}
    for document in documents:
        try:
            parsed = json.loads(document)
        except (ValueError, RecursionError):
            continue
        for node in _objects(parsed):
            for url, name in _pages_of(node):
                if (resolved := replace_surrogates(_resolved(base, url))) and len(found) < _MAX_PAGES:
                    found.setdefault(resolved, replace_surrogates(" ".join(name.split())[:_MAX_NAME]))
    return tuple(found.items())


def without_parameters(template: str) -> str:
    """Return the URL of a search without words from its template (OpenSearch 1.1, or a SearchAction of schema.org).

    >>> without_parameters("https://x.example/find?q={searchTerms}&page={startPage?}")
    'https://x.example/find?q=&page='
    """
    return _TEMPLATE_PARAMETER.sub("", template)


def search_name(name: str) -> str:
    """Return the name of a search from that of its site, or of the search itself.

    >>> search_name("Shop"), search_name("Shop search")
    ('Search Shop', 'Shop search')
    """
    return name if "search" in name.lower() else f"Search {name}".strip()


def _objects(document: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a document, each before those in it."""
    waiting, count = [document], 0
    while waiting and count < _MAX_OBJECTS:
        value = waiting.pop()
        count += 1
        if isinstance(value, dict):
            yield value
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value[:_MAX_OBJECTS]))


def _pages_of(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if _is_a(node, "BreadcrumbList"):
        for entry in _each(node.get("itemListElement")):
            item = entry.get("item")
            inner = item if isinstance(item, dict) else {}
            yield (
                _text(item) or _text(inner.get("@id")) or _text(inner.get("url")),
                (_text(entry.get("name")) or _text(inner.get("name"))),
            )
    elif _is_a(node, "WebSite"):
        for action in _each(node.get("potentialAction")):
            if _is_a(action, "SearchAction"):
                target = action.get("target")
                template = target.get("urlTemplate") if isinstance(target, dict) else target
                yield without_parameters(_text(template)), search_name(_text(node.get("name")))


def _is_a(node: dict[str, Any], kind: str) -> bool:
    types = node.get("@type")
    return kind in (types if isinstance(types, list) else [types])


def _each(value: object) -> Iterator[dict[str, Any]]:
    return (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _resolved(base: str, address: str) -> str:
    """Return an address as an absolute URL of a page; empty if it is none."""
    try:
        url = urljoin(base, address.strip()) if address.strip() else ""
        is_page = urlsplit(url).scheme in {"http", "https"} and bool(urlsplit(url).hostname)
    except ValueError:
        return ""
    return url if is_page and len(url) <= _MAX_URL else ""
