"""Which hits a model is asked about: no question if the first is sure, else the first few pages, then all of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from waygraph.core.schemas import Hit
from waygraph.index.catalog.repeats import page_key

#: Confidence from which the first hit is taken without a question. A question takes about 800 tokens, a wrong page a
#: step and another navigation, about 3,200. At 0.89 a perfect choice is better by .11, worth 350 tokens: not asked. At
#: 0.73 it is by .27, worth 860 and a quarter of a step: asked. See "When a model is asked" in
#: bench/retrieval/recipes.md.
SURE = 0.8
#: Pages in the first question.
FEW = 8


def is_sure(confidence: float | None, *, nothing_matches: bool | None) -> bool:
    """Return whether the first hit can be taken unasked; not for an encoder whose confidence was not measured."""
    return confidence is not None and confidence >= SURE and not nothing_matches


def shortlists(hits: Sequence[Hit], most: int) -> list[list[int]]:
    """Return the hits of each question, as indices: a few pages, and all hits, asked if none of the few fits.

    Of the states of a page that the search matched by the same text, the few have the first: the query does not tell
    them apart, and the others are an action away.

    Parameters
    ----------
    hits
        The hits, best first.
    most
        Most hits in a question.

    Returns
    -------
    list of list of int
        One or two lists, none without hits.
    """
    first: dict[Hashable, int] = {}
    for index, hit in enumerate(hits[:most]):
        page = page_key(hit.url, hit.title)
        key: Hashable = (page, hit.matched.text) if hit.matched and hit.matched.text else hit.node_id
        first.setdefault(key, index)
    few, every = list(first.values())[:FEW], list(range(min(most, len(hits))))
    return [few, every] if len(few) < len(every) else [few] if few else []
