"""Which state does a page show? By identity, else by likeness of structure, else by URL."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from index.graph import InteractionGraph, Node, Recognition, UrlPolicy, node_id, normalize_url, url_template
from index.graph.recognition import NO_RECOGNITION, STANDS_FOR

#: Below this Jaccard similarity two structures are not taken for the same state. Pages of one template share their
#: frame (navigation, header, footer), which alone can make up a third of their elements.
MIN_STRUCTURE_SIMILARITY = 0.5

LocateRule = Literal["exact", "structure", "url", "none"]


@dataclass(frozen=True, slots=True)
class Located:
    """Which state a page shows, which rule decided, and how sure that is (see `Locator.locate`)."""

    node_id: str | None
    rule: LocateRule
    confidence: float


class Locator:
    """Finds states of one graph by URL and structure. Immutable, so that threads may share it.

    Parameters
    ----------
    graph : the states.
    policy : how the URLs of the graph were normalised.
    recognition : other looks at its states.

    """

    def __init__(self, graph: InteractionGraph, policy: UrlPolicy, recognition: Recognition = NO_RECOGNITION) -> None:
        self._graph = graph
        self._merges = recognition.merges
        self._policy = policy
        # In each group the state to assume first: addressable, then least deep.
        self._nodes = sorted(graph.nodes.values(), key=lambda node: (not node.addressable, node.depth, node.id))
        self._by_url = _grouped(node.url for node in self._nodes)
        self._by_template = _grouped(url_template(node.url) for node in self._nodes)

    def locate(self, url: str, structure: Collection[str] | None = None) -> Located:
        """Which state shows `url` and (when known) these element hashes?

        The first rule that finds one decides:

        1. `exact`: structure and normalised URL have the id of a state, or of a look that was taken for it while
           exploring. Confidence 1.
        2. `structure`: the state of the same URL, or else of the same URL template, whose structure is most similar,
           at least `MIN_STRUCTURE_SIMILARITY`. Confidence is the Jaccard similarity.
        3. `url`: a state of that URL, addressable and least deep first. Confidence is the similarity when a structure
           was given, otherwise one over the number of states that share the URL.
        4. `none`.
        """
        canonical = normalize_url(url, self._policy)
        same_url = self._by_url.get(canonical, [])
        if structure is None:
            return Located(self._nodes[same_url[0]].id, "url", 1 / len(same_url)) if same_url else _NOWHERE
        exact = node_id(structure, canonical)
        if exact in self._graph:
            return Located(exact, "exact", 1.0)
        merge = self._merges.get(exact)
        if merge is not None and merge.reason != STANDS_FOR:
            return Located(merge.kept, "exact", 1.0)
        for group in (same_url, self._by_template.get(url_template(canonical), [])):
            likeness = self._structures.similarities(structure, group)
            if group and likeness.max() >= MIN_STRUCTURE_SIMILARITY:
                best = int(likeness.argmax())
                return Located(self._nodes[group[best]].id, "structure", float(likeness[best]))
        if not same_url:
            return _NOWHERE
        return Located(
            self._nodes[same_url[0]].id, "url", float(self._structures.similarities(structure, same_url[:1])[0])
        )

    @cached_property
    def _structures(self) -> _Structures:
        return _Structures(self._nodes)


_NOWHERE = Located(None, "none", 0.0)


class _Structures:
    """The structures of many states as numbers, so that one page is compared with all of them at once."""

    def __init__(self, nodes: list[Node]) -> None:
        self._codes: dict[str, int] = {}
        lengths = [len(node.structure) for node in nodes]
        elements = chain.from_iterable(node.structure for node in nodes)
        self._elements = np.fromiter(
            (self._codes.setdefault(element, len(self._codes)) for element in elements), np.int32, sum(lengths)
        )
        self._ends = np.cumsum([0, *lengths])

    def similarities(self, structure: Collection[str], group: list[int]) -> NDArray[np.float64]:
        """Jaccard similarity of `structure` to each state of the group, as `index.graph.similarity` has it."""
        distinct = set(structure)
        known = np.zeros(len(self._codes), dtype=bool)
        for element in distinct:
            if (code := self._codes.get(element)) is not None:
                known[code] = True
        numbers = np.asarray(group, dtype=np.intp)
        starts, ends = self._ends[numbers], self._ends[numbers + 1]
        shared = np.array([known[self._elements[a:b]].sum() for a, b in zip(starts, ends, strict=True)], dtype=float)
        union = len(distinct) + (ends - starts) - shared
        likeness = np.ones(len(group))
        np.divide(shared, union, out=likeness, where=union > 0)
        return likeness


def _grouped(keys: Iterable[str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    return groups
