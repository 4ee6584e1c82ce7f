"""Boilerplate of a site: texts and title parts that occur on so many states that they describe none.

A change of what counts as boilerplate changes vectors. It needs:

- a new `RECIPE` in `encoder`: without it, vectors of both rules get one fingerprint and are compared with each other;
- another threshold for the new fingerprint in `waygraph.serve.select.no_match`, fitted as it says there;
- the same counts in `waygraph.pipeline.encode.text_counts`, or new ones.

Under an unchanged fingerprint a refreshed site keeps its old boilerplate, see `boilerplate_reuse`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from waygraph.index.graph import SegmentCounts
from waygraph.pipeline.encode.protocol import SiteContext
from waygraph.pipeline.encode.text_counts import clean

#: A text on more than this share of a site's states is boilerplate (navigation, footer, banners).
BOILERPLATE_SHARE = 0.3
#: It must also be on more than this many states: 30% of a site of four states is the text of any two pages.
BOILERPLATE_MIN_STATES = 3
#: A title part belongs to the site, not to the page, if more than this share of the states have it.
TITLE_SHARE = 0.5

_TITLE_SEPARATOR = re.compile(
    r"\s+[|\-\u2013\u2014\u00b7\u2022\u00bb\u203a:/]+\s+|\s*[|\u00b7\u2022\u00bb\u203a]\s*|:\s+"
)


def title_parts(title: str) -> list[str]:
    """Split a title at its separators.

    >>> title_parts("Order 17 - Orders | Acme")
    ['Order 17', 'Orders', 'Acme']
    """
    return [part for piece in _TITLE_SEPARATOR.split(clean(title)) if (part := piece.strip())]


@dataclass(frozen=True, slots=True)
class SiteText:
    """What the text encoder needs to know about a site before it encodes single states.

    Attributes
    ----------
    boilerplate
        Segment texts that are left out.
    titles
        Title parts that are left out.
    shared
        For each URL with several states, the texts that most of them show. The other texts distinguish them.
    """

    boilerplate: frozenset[str] = frozenset()
    titles: frozenset[str] = frozenset()
    shared: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def from_counts(cls, counts: SegmentCounts) -> Self:
        """Derive boilerplate from the counts of a whole site.

        Sites of up to three states have no boilerplate and keep their titles, since shares of so few states say
        nothing.
        """
        max_text_states = max(BOILERPLATE_SHARE * counts.states, BOILERPLATE_MIN_STATES)
        boilerplate = frozenset(text for text, states in counts.texts.items() if states > max_text_states)
        parts: Counter[str] = Counter()
        for title, states in counts.titles.items():
            for part in set(title_parts(title)):
                parts[part] += states
        max_title_states = max(TITLE_SHARE * counts.states, BOILERPLATE_MIN_STATES)
        titles = frozenset(part for part, states in parts.items() if states > max_title_states)
        shared = {url: texts - boilerplate for url, texts in counts.shared.items()}
        return cls(boilerplate, titles, shared)

    def to_json(self) -> SiteContext:
        """Return plain JSON, equal for equal sites."""
        return {
            "boilerplate": sorted(self.boilerplate),
            "titles": sorted(self.titles),
            "shared": {url: sorted(texts) for url, texts in sorted(self.shared.items())},
        }

    @classmethod
    def from_json(cls, context: SiteContext) -> Self:
        """Restore from the result of `to_json`."""
        return cls(
            frozenset(context["boilerplate"]),
            frozenset(context["titles"]),
            {url: frozenset(texts) for url, texts in context["shared"].items()},
        )

    def own_title(self, title: str) -> str:
        """Return the parts of `title` that are not boilerplate. The result may be empty.

        >>> SiteText(titles=frozenset({"Acme"})).own_title("Order 17 - Orders | Acme")
        'Order 17, Orders'
        """
        return ", ".join(part for part in title_parts(title) if part not in self.titles)
