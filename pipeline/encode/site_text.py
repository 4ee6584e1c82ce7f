"""What does a site repeat everywhere, so that it says nothing about a single state?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from index.graph import SegmentCounts
from pipeline.encode.counts import clean
from pipeline.encode.protocol import SiteContext

#: A text on more than this share of a site's states is boilerplate (navigation, footer, banners).
BOILERPLATE_SHARE = 0.3
#: ... and on more than this many states: 30% of a site of four states would be the text of any two pages.
BOILERPLATE_MIN_STATES = 3
#: A part of the title is the site's, not the page's, when more than this share of the states carry it.
TITLE_SHARE = 0.5

_TITLE_SEPARATOR = re.compile(
    r"\s+[|\-\u2013\u2014\u00b7\u2022\u00bb\u203a:/]+\s+|\s*[|\u00b7\u2022\u00bb\u203a]\s*|:\s+"
)


def title_parts(title: str) -> list[str]:
    """The pieces of a title between separators.

    >>> title_parts("Order 17 - Orders | Acme")
    ['Order 17', 'Orders', 'Acme']
    """
    return [part for piece in _TITLE_SEPARATOR.split(clean(title)) if (part := piece.strip())]


@dataclass(frozen=True, slots=True)
class SiteText:
    """What the text encoder must know of a site before it reads a state of it.

    Attributes
    ----------
    boilerplate : segment texts that are left out.
    titles : title parts that are left out.
    shared : for each URL with several states, the texts that most of them show: what is left tells them apart.

    """

    boilerplate: frozenset[str] = frozenset()
    titles: frozenset[str] = frozenset()
    shared: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def from_counts(cls, counts: SegmentCounts) -> Self:
        """Derive it from a whole site.

        Sites of up to three states have no boilerplate and keep their titles: nothing can be told from so few.
        """
        often = max(BOILERPLATE_SHARE * counts.states, BOILERPLATE_MIN_STATES)
        boilerplate = frozenset(text for text, states in counts.texts.items() if states > often)
        parts: Counter[str] = Counter()
        for title, states in counts.titles.items():
            for part in set(title_parts(title)):
                parts[part] += states
        often = max(TITLE_SHARE * counts.states, BOILERPLATE_MIN_STATES)
        titles = frozenset(part for part, states in parts.items() if states > often)
        shared = {url: texts - boilerplate for url, texts in counts.shared.items()}
        return cls(boilerplate, titles, shared)

    def to_json(self) -> SiteContext:
        """Plain JSON, equal for equal sites."""
        return {
            "boilerplate": sorted(self.boilerplate),
            "titles": sorted(self.titles),
            "shared": {url: sorted(texts) for url, texts in sorted(self.shared.items())},
        }

    @classmethod
    def from_json(cls, context: SiteContext) -> Self:
        """Inverse of `to_json`."""
        return cls(
            frozenset(context["boilerplate"]),
            frozenset(context["titles"]),
            {url: frozenset(texts) for url, texts in context["shared"].items()},
        )

    def own_title(self, title: str) -> str:
        """The parts of `title` that the site does not repeat everywhere; may be empty.

        >>> SiteText(titles=frozenset({"Acme"})).own_title("Order 17 - Orders | Acme")
        'Order 17, Orders'
        """
        return ", ".join(part for part in title_parts(title) if part not in self.titles)
