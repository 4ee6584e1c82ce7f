"""What a site lists of itself in sitemaps and feeds: pages, with names and dates where they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

_DAY = len("2026-01-31")
#: Counters of problems after which a listing lacks something that the site meant to list.
_CUTS = ("doctype", "malformed", "too_large", "too_many", "left_out")


class ListedPage(Struct, frozen=True, gc=False, omit_defaults=True):
    """A page that a site lists.

    Attributes
    ----------
    url
        Its URL.
    name
        Title in a feed or in a news sitemap; empty without one.
    lastmod
        When it changed last, in UTC (`waygraph.pipeline.explore.sitemap.dates`); empty if that is not known.
    """

    url: str
    name: str = ""
    lastmod: str = ""


@dataclass(frozen=True, slots=True)
class SiteListing:
    """What a site lists of itself. It is part of the journal: a resumed exploration has the same.

    Attributes
    ----------
    at
        When it was read, in UTC, in the form of `ListedPage.lastmod`.
    pages
        Pages within the scope, each URL once: those of sitemaps and feeds in their order, then pages in other languages
        that are named beside them only.
    counters
        `sitemap/...`, see docs/counters.md.
    """

    at: str = ""
    pages: tuple[ListedPage, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def advice(self) -> str:
        """What the report says of files that were not read in full; empty if all were."""
        cuts = {name: count for name in _CUTS if (count := self.counters.get(f"sitemap/{name}"))}
        if not cuts:
            return ""
        found = ", ".join(f"{name} {count}" for name, count in cuts.items())
        return f"Sitemaps of the site were not read in full ({found}): what else they list is not among the leads."


def is_later(lastmod: str, moment: str) -> bool:
    """Return whether a change may have come after a moment. A date without a time may mean the end of its day.

    >>> is_later("2026-01-31", "2026-01-31T12:00:00Z"), is_later("2026-01-31T11:00:00Z", "2026-01-31T12:00:00Z")
    (True, False)
    """
    return bool(lastmod) and (f"{lastmod}T23:59:59Z" if len(lastmod) == _DAY else lastmod) > moment
