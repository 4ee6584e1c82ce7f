"""Which state does a page show? By identity, else by likeness of structure, else by URL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from index.graph import (
    InteractionGraph,
    Node,
    Recognition,
    UrlPolicy,
    node_id,
    normalize_url,
    similarity,
    url_template,
)
from index.graph.recognition import NO_RECOGNITION, STANDS_FOR

#: Below this Jaccard similarity two structures are not taken for the same state. Pages of one template share their
#: frame (navigation, header, footer), which alone can make up a third of their elements.
MIN_STRUCTURE_SIMILARITY = 0.5

#: Of one URL or template so many distinct structures are compared with a page one by one: of more, those that share the
#: most of the rarest elements of the page, of which so many are looked at.
COMPARED_AT_ONCE, RAREST = 256, 64

LocateRule = Literal["exact", "evidence", "structure", "url", "none"]


@dataclass(frozen=True, slots=True)
class Located:
    """Which state a page shows, which rule decided, and how sure that is (see `Locator.locate`, `OpenMap.locate`)."""

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
        self._compared: dict[tuple[str, str], _Structures] = {}

    def locate(self, url: str, structure: Collection[str] | None = None) -> Located:
        """Which state shows `url` and (when known) these element hashes?

        The first rule that finds one decides:

        1. `exact`: structure and normalised URL have the id of a state, or of a look that was taken for it while
           exploring. Confidence 1.
        2. `structure`: the state of the same URL, or else of the same URL template, whose structure is most similar,
           at least `MIN_STRUCTURE_SIMILARITY`. Confidence is the Jaccard similarity. Where there are more than
           `COMPARED_AT_ONCE` distinct structures, it is the most similar of as many candidates.
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
        template = url_template(canonical)
        for kind, key, group in (
            ("url", canonical, same_url),
            ("template", template, self._by_template.get(template, [])),
        ):
            if group:
                nearest, likeness = self._structures((kind, key), group).nearest(structure)
                if likeness >= MIN_STRUCTURE_SIMILARITY:
                    return Located(self._nodes[group[nearest]].id, "structure", likeness)
        if not same_url:
            return _NOWHERE
        first = self._nodes[same_url[0]]
        return Located(first.id, "url", similarity(structure, first.structure))

    def _structures(self, key: tuple[str, str], group: list[int]) -> _Structures:
        """The structures of a group, made when a page is first compared with it; two threads may both make them."""
        if (known := self._compared.get(key)) is None:
            known = self._compared[key] = _Structures([self._nodes[number] for number in group])
        return known


_NOWHERE = Located(None, "none", 0.0)


class _Structures:
    """The distinct structures of a group of states as numbers, so that a page is compared with many of them at once."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        first: dict[tuple[str, ...], int] = {}
        for number, node in enumerate(nodes):
            first.setdefault(node.structure, number)
        #: By structure, the first state of the group that has it.
        self._states = np.fromiter(first.values(), np.intp, len(first))
        self._sizes = np.fromiter(map(len, first), np.int64, len(first))
        self._codes: dict[str, int] = {}
        elements = chain.from_iterable(first)
        self._elements = np.fromiter(
            (self._codes.setdefault(element, len(self._codes)) for element in elements), np.int32, self._sizes.sum()
        )
        self._ends = np.cumsum([0, *self._sizes])

    def nearest(self, structure: Collection[str]) -> tuple[int, float]:
        """The state whose structure is most similar, as `index.graph.similarity` has it; of equals the first."""
        distinct = set(structure)
        codes = np.fromiter((c for e in distinct if (c := self._codes.get(e)) is not None), np.intp)
        rows = np.arange(len(self._states)) if len(self._states) <= COMPARED_AT_ONCE else self._candidates(codes)
        known = np.zeros(len(self._codes), dtype=bool)
        known[codes] = True
        shared = np.array([known[self._elements[self._ends[r] : self._ends[r + 1]]].sum() for r in rows], dtype=float)
        union = len(distinct) + self._sizes[rows] - shared
        likeness = np.ones(len(rows))
        np.divide(shared, union, out=likeness, where=union > 0)
        best = int(likeness.argmax())
        return int(self._states[rows[best]]), float(likeness[best])

    def _candidates(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """The structures that share most of the rarest elements of a page, in the order of the group."""
        starts, rows = self._postings
        rarest = codes[np.argsort(np.diff(starts)[codes], kind="stable")[:RAREST]]
        shared = np.zeros(len(self._states), dtype=np.int64)
        for code in rarest:
            shared[rows[starts[code] : starts[code + 1]]] += 1
        best = np.argpartition(-shared, COMPARED_AT_ONCE)[:COMPARED_AT_ONCE]
        return np.sort(best)

    @cached_property
    def _postings(self) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Where the structures that have an element begin, by element, and these structures one after the other."""
        owners = np.repeat(np.arange(len(self._states), dtype=np.int32), self._sizes)
        order = np.argsort(self._elements, kind="stable")
        starts = np.searchsorted(self._elements[order], np.arange(len(self._codes) + 1))
        return starts, owners[order]


def _grouped(keys: Iterable[str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    return groups
