"""Leads to pages that the site lists in sitemaps, feeds and JSON-LD, and dates of leads that links lead to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from waygraph.core.text import shortened
from waygraph.index.graph import Action, Lead, lead_id
from waygraph.pipeline.explore.records.listing import ListedPage

_NUMBER = re.compile(r"\d+")
#: Characters of a name.
_MAX_TEXT = 120


class ListedLeads:
    """Pages that a site lists, as leads without a link.

    Parameters
    ----------
    pages
        The pages, the most telling first. What is listed twice has the first name and date.
    url_key
        Returns the URL by which two links lead to one page.
    """

    def __init__(self, pages: Sequence[ListedPage], url_key: Callable[[str], str]) -> None:
        self._url_key = url_key
        self._by_key: dict[str, ListedPage] = {}
        for page in pages:
            key = url_key(page.url)
            known = self._by_key.setdefault(key, page)
            if known is not page:
                self._by_key[key] = ListedPage(known.url, known.name or page.name, known.lastmod or page.lastmod)

    def completed(self, lead: Lead) -> Lead:
        """Return a lead with the date, and if its links have no name the title, that the site lists."""
        page = self._by_key.get(self._url_key(lead.url))
        if page is None:
            return lead
        return replace(lead, lastmod=page.lastmod, names=lead.names or _names(page))

    def most_novel_first(
        self,
        is_known: Callable[[str], bool],
        visited: Iterable[str],
        refuse_url: Callable[[str], str | None],
        counters: Counter[str],
    ) -> Iterator[ListedPage]:
        """Yield the pages that no link leads to, those first of whose kinds the map and those before have the fewest.

        Listings are long, so pages are not compared as links are (`NoveltyModel`): the first of each URL template comes
        before the second of any, and of those the first of each folder before the second of any.

        Parameters
        ----------
        is_known
            Whether a page was visited, or a link leads to it, by its URL key.
        visited
            URLs of visited pages.
        refuse_url
            Returns the reason of the policy that refuses a URL. Such pages are counted as `sitemap/refused`.
        counters
            The counters.

        Yields
        ------
        ListedPage
            Each page once.
        """
        counted = Counter(chain.from_iterable(map(_kinds, visited)))
        ranked: list[tuple[int, int, int, ListedPage]] = []
        for number, (key, page) in enumerate(self._by_key.items()):
            if not is_known(key):
                folder, template = _kinds(page.url)
                ranked.append((counted[template], counted[folder], number, page))
                counted[template] += 1
                counted[folder] += 1
        for *_, page in sorted(ranked):
            if refuse_url(page.url) is None:
                yield page
            else:
                counters["sitemap/refused"] += 1

    @staticmethod
    def lead(page: ListedPage, url: str, start: str) -> Lead:
        """Return the lead to a page: its action loads the URL, and its state is the start page."""
        return Lead(
            id=lead_id(url),
            url=url,
            names=_names(page),
            heading="",
            description="",
            state=start,
            action=Action("goto", url=page.url if "#" in url else page.url.partition("#")[0]),
            depth=1,
            lastmod=page.lastmod,
        )


def _kinds(url: str) -> tuple[str, str]:
    """Return the folder of a URL, and its template: numbers are masked, and parameters have no values.

    >>> _kinds("https://x.example/p/17/view?b=2&a=1")
    ('https://x.example/p/#/', 'https://x.example/p/#/view?a&b')
    """
    path, _, query = url.partition("#")[0].partition("?")
    masked = _NUMBER.sub("#", path)
    names = "&".join(sorted(pair.partition("=")[0] for pair in query.split("&")))
    return masked[: masked.rfind("/") + 1], f"{masked}?{names}"


def _names(page: ListedPage) -> tuple[str, ...]:
    name = shortened(" ".join(page.name.split()), _MAX_TEXT)
    return (name,) if name else ()
