"""Lower the scores of further states of one page, so that the first hits of a search show different pages.

A page and the same page with a menu open, or in a dark theme, show nearly the same texts, and score nearly the same.
Without a penalty a page with many such states fills the first hits, and the right page follows them. The same holds for
leads with one name: "History" of every record.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from waygraph.index.graph import Lead, Node
from waygraph.index.graph.url_templates import Template, url_templates

#: The query of a URL, not one within its fragment.
_QUERY = re.compile(r"^([^?#]*)\?[^#]*")

#: Subtracted from the score of the second and of each further state of a page, by name of the encoder: each has a scale
#: of its own. Chosen on dev sites of `bench/retrieval`. Encoders without an entry have not been measured: their
#: scores stay as they are. The penalty grows no further, since an application may have one URL for all its states.
REPEAT_PENALTIES: dict[str, tuple[float, float]] = {"text": (0.1, 0.2)}
#: Subtracted from the score of a lead that a policy refuses, by name of the encoder: nobody is led there.
REFUSED_PENALTIES: dict[str, float] = {"text": 0.3}
#: How far a copy stays behind the visited page that it is a copy of.
_BEHIND = 1e-4
#: Shorter names, such as "2" and "A", are in nearly every title.
_MIN_NAME = 3


def page_key(url: str, title: str) -> tuple[str, str]:
    """Return what the states of one page have in common: the URL without its query, and the title.

    Pages that are told apart by the query alone (`?id=start`) have titles of their own. Without a title, nothing says
    that another query shows the same page, so the key is the whole URL.

    >>> page_key("http://shop.example/mugs?theme=dark", "Mugs") == page_key("http://shop.example/mugs", "Mugs")
    True
    """
    return (_QUERY.sub(r"\1", url), title) if title else (url, "")


class Place(NamedTuple):
    """What the order of hits needs to know of a state or lead besides its score; no query changes it.

    Attributes
    ----------
    page
        Number of its page in the map. Leads of one name count as one page, if no state is of theirs.
    plainness
        How little a state is a variant of its page, plainest first: reached by its address, short, near.
    is_lead
        Whether it is a lead.
    is_refused
        Whether it is a lead that a policy refuses.
    copied
        Of a lead, the visited states of the same function for another entity: their URLs differ from its URL in one
        place, and their titles contain its name.
    """

    page: int
    plainness: tuple[bool, int, int]
    is_lead: bool = False
    is_refused: bool = False
    copied: tuple[str, ...] = ()


def places_of(states_and_leads: Iterable[Node | Lead]) -> dict[str, Place]:
    """Return the place of each state and lead of a map, by id."""
    every = list(states_and_leads)
    pages: dict[Hashable, int] = {}
    visited: dict[Template, list[Node]] = defaultdict(list)
    for each in every:
        if isinstance(each, Node):
            for template, _ in url_templates(each.url):
                visited[template].append(each)
    titles = {template: "\n".join(node.title.casefold() for node in nodes) for template, nodes in visited.items()}
    found = {}
    for each in every:
        if isinstance(each, Lead):
            key = page_key(each.url, each.title)
            page = pages.setdefault(key if key in pages else each.title.casefold(), len(pages))
            found[each.id] = Place(page, (False, 0, 0), True, bool(each.refusal), _copied(each, visited, titles))
        else:
            page = pages.setdefault(page_key(each.url, each.title), len(pages))
            found[each.id] = Place(page, (not each.addressable, len(each.url), each.depth))
    return found


def _copied(lead: Lead, visited: Mapping[Template, Sequence[Node]], titles: Mapping[Template, str]) -> tuple[str, ...]:
    """Return the states that a lead is a copy of. `titles` has those of each template, so that few are compared."""
    name = lead.names[0].casefold() if lead.names else ""
    if len(name) < _MIN_NAME:
        return ()
    templates = (template for template, _ in url_templates(lead.url) if name in titles.get(template, ""))
    alike = (node for template in templates for node in visited[template])
    return tuple(dict.fromkeys(node.id for node in alike if name in node.title.casefold()))


def after_copied(
    scores: Sequence[float],
    names: Sequence[str],
    places: Sequence[Place],
    shown: Callable[[Sequence[int]], Sequence[frozenset[str]]],
) -> list[float]:
    """Return scores with which no lead comes before a visited page that it is a copy of.

    A lead "History" of one record is described by what the visited history of another record shows. It comes first only
    if it shows a word of the query that the visited page does not show, such as the name of its record.

    Parameters
    ----------
    scores
        Score of each hit.
    names
        Id of each hit.
    places
        The place of each hit.
    shown
        Returns the words of the query that hits show, by their indices.

    Returns
    -------
    list of float
        By hit.
    """
    at = {name: index for index, name in enumerate(names)}
    found = list(scores)
    for index, place in enumerate(places):
        copied = [at[name] for name in place.copied if name in at]
        if copied and scores[index] > (most := max(scores[each] for each in copied)):
            best = next(each for each in copied if scores[each] == most)
            own, theirs = shown([index, best])
            if own <= theirs:
                found[index] = most - _BEHIND
    return found


def plain_first(
    scores: Sequence[float],
    places: Sequence[Place],
    shown: Callable[[Sequence[int]], Sequence[frozenset[str]]],
    encoder: str,
) -> list[float]:
    """Return scores with which the plain state of a page comes before its variants that score little more.

    A variant is the page with something opened, filtered or sorted. It stays first if it shows a word of the query that
    the plain state does not show, or scores more by half of what a second state of a page loses. Otherwise the plain
    state gets its score, and ties with it; `Place.plainness` then breaks the tie.

    Parameters
    ----------
    scores
        Score of each hit.
    places
        The place of each hit.
    shown
        Returns the words of the query that hits show, by their indices. Called for states of pages with several.
    encoder
        Name of the encoder.

    Returns
    -------
    list of float
        By hit: the score, or that of a variant.
    """
    margin = REPEAT_PENALTIES.get(encoder, (0.0,))[0] / 2
    states: dict[int, list[int]] = {}
    for index, place in enumerate(places):
        if not place.is_lead:
            states.setdefault(place.page, []).append(index)
    pages = [page for page in states.values() if len(page) > 1]
    several = [index for page in pages for index in page]
    terms = dict(zip(several, shown(several), strict=True)) if several else {}
    found = list(scores)
    for page in pages:
        plain = min(page, key=lambda index: places[index].plainness)
        variants = (i for i in page if scores[i] - scores[plain] <= margin and terms[i] <= terms[plain])
        found[plain] = max([scores[plain], *(scores[i] for i in variants)])
    return found


def repeat_penalties(pages: Iterable[Hashable], encoder: str) -> list[float]:
    """Return what is subtracted from the scores of hits.

    Parameters
    ----------
    pages
        The page of each hit; best first.
    encoder
        Name of the encoder.

    Returns
    -------
    list of float
        By hit: 0 for the first of a page. The order of the hits of one page stays the same.
    """
    penalties = (0.0, *REPEAT_PENALTIES.get(encoder, (0.0,)))
    seen: Counter[Hashable] = Counter()
    found = []
    for page in pages:
        found.append(penalties[min(seen[page], len(penalties) - 1)])
        seen[page] += 1
    return found
