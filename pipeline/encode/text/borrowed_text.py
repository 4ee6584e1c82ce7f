"""What visited pages of the same kind say about a page that was not visited.

A link "Gantt" of one project says little; the page of another project at the same place of its address, which was
visited, shows headings, fields and buttons. What several such pages have in common describes the kind, and none of
them in particular.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from waygraph.core.text import shortened
from waygraph.index.graph import Observation
from waygraph.index.graph.url_templates import Template, url_templates
from waygraph.pipeline.encode.text.composites import BUTTON_ROLES, COLUMN_ROLES, FIELD_ROLES, has_words
from waygraph.pipeline.encode.text.own_text import MAX_NAME_CHARS, own_pieces
from waygraph.pipeline.encode.text.site_text import SiteText

#: Texts that a page borrows at most.
MAX_BORROWED = 14
#: Pages are of one kind if they share this part of the texts that each shows on average.
ALIKE_SHARE = 0.5
#: Visited pages of a template from which a kind is known. One is enough where whole ends of paths are equal: they name
#: the function, and what differs is where it stands.
_LEAST_PAGES, _LEAST_PAGES_BY_END = 2, 1
#: Roles of texts that say what a page is for. Others (rows of a table, running text) are about its entity.
_KIND_ROLES = BUTTON_ROLES | FIELD_ROLES | COLUMN_ROLES | {"heading"}

_Texts = dict[str, str]
"""Roles by text."""


class BorrowedTexts:
    """Texts of visited pages by the templates of their URLs.

    Parameters
    ----------
    observations
        What the states of the site show.
    site
        Boilerplate of the site, which no page lends.
    """

    def __init__(self, observations: Iterable[Observation], site: SiteText) -> None:
        self._texts: dict[str, _Texts] = {}
        self._urls: dict[Template, dict[str, str]] = defaultdict(dict)
        self._common: dict[tuple[Template, str | None], tuple[float, Sequence[str]]] = {}
        for seen in observations:
            if seen.url not in self._texts:
                pieces = (piece for piece in own_pieces(seen, site) if has_words(piece.text))
                self._texts[seen.url] = {piece.name: piece.role for piece in pieces}
                for template, value in url_templates(seen.url):
                    self._urls[template].setdefault(value, seen.url)

    def of(self, url: str) -> Sequence[str]:
        """Return what visited pages of the kind of a URL have in common, of the template whose pages are most alike."""
        found = (self._of_template(template, value) for template, value in url_templates(url))
        return max(found, key=lambda each: (each[0], len(each[1])), default=(0.0, ()))[1]

    def _of_template(self, template: Template, value: str) -> tuple[float, Sequence[str]]:
        """Return how alike the pages of a template are, without that of `value`, and what they have in common."""
        urls = self._urls.get(template)
        if urls is None:
            return 0.0, ()
        key = (template, value if value in urls else None)
        if key not in self._common:
            others = {each: url for each, url in urls.items() if each != value}
            self._common[key] = self._shared(others, by_end=template[1] == "*")
        return self._common[key]

    def _shared(self, urls: dict[str, str], *, by_end: bool) -> tuple[float, Sequence[str]]:
        pages = [self._texts[url] for url in urls.values()]
        if len(pages) < (_LEAST_PAGES_BY_END if by_end else _LEAST_PAGES):
            return 0.0, ()
        counts = Counter(text for page in pages for text in page)
        shared = [text for text, count in counts.items() if 2 * count > len(pages)]
        alike = len(shared) * len(pages) / max(1, counts.total())
        if alike < ALIKE_SHARE:
            return 0.0, ()
        roles = {text: role for page in pages for text, role in page.items()}
        # What names the other page's entity would say that this page is about it.
        entities = {part.casefold() for value in urls for part in value.split("/") if len(part) > 2}
        lent = (
            shortened(text, MAX_NAME_CHARS)
            for text in shared
            if roles[text] in _KIND_ROLES and not any(entity in text.casefold() for entity in entities)
        )
        return alike, tuple(islice(lent, MAX_BORROWED))
