"""Location of a page in a map: by identity, else by similarity of structure, else by URL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from waygraph.core.urls import UrlPolicy, normalize_url, url_template
from waygraph.index.graph import InteractionGraph, Node, Recognition, node_id, similarity
from waygraph.index.graph.recognition import NO_RECOGNITION, REPRESENTED_PAGE

#: Jaccard similarity from which on two structures may be the same state. Pages of one template have a
#: shared layout (navigation, header, footer), which alone can make up a third of their elements.
MIN_STRUCTURE_SIMILARITY = 0.5

#: Number of distinct structures of one URL or template that are compared with a page one by one. Of more, those are
#: compared that share most of the page's rarest elements.
MAX_COMPARED_STRUCTURES = 256
#: Number of a page's rarest elements by which structures are preselected.
RAREST_ELEMENTS = 64

LocateRule = Literal["exact", "evidence", "structure", "url", "none"]


@dataclass(frozen=True, slots=True)
class LocatedState:
    """The state that a page shows, see `Locator.locate` and `OpenMap.locate`.

    Attributes
    ----------
    node_id
        Id of the state; None if none was found.
    rule
        The rule that decided.
    confidence
        Confidence in [0, 1], as the rule defines it.
    """

    node_id: str | None
    rule: LocateRule
    confidence: float


_NOT_LOCATED = LocatedState(None, "none", 0.0)


class Locator:
    """Index of the states of one graph by URL and structure. Immutable, so threads may share it.

    Parameters
    ----------
    graph
        The states.
    policy
        The policy by which the URLs of the graph were normalised.
    recognition
        Recognition of the map.
    """

    def __init__(self, graph: InteractionGraph, policy: UrlPolicy, recognition: Recognition = NO_RECOGNITION) -> None:
        self._graph = graph
        self._merges = recognition.merges
        others = recognition.other_urls(graph)
        self._page_urls = {other: url for url, urls in others.items() for other in urls}
        self._policy = policy
        # In each group the state to assume first: addressable, then least deep.
        self._nodes = sorted(graph.nodes.values(), key=lambda node: (not node.addressable, node.depth, node.id))
        self._by_url = _indices_by_key(node.url for node in self._nodes)
        self._by_template = _indices_by_key(url_template(node.url) for node in self._nodes)
        self._structure_indexes: dict[tuple[str, str], _StructureIndex] = {}

    def locate(self, url: str, structure: Collection[str] | None = None) -> LocatedState:
        """Find the state that a page shows.

        A URL that showed the page of another one during exploration counts as that one. The first rule that finds a
        state decides:

        1. `exact`: structure and normalised URL have the id of a state, or of a snapshot that was recognised as it
           during exploration. Confidence 1.
        2. `structure`: the state of the same URL, or else of the same URL template, whose structure is most similar, at
           least `MIN_STRUCTURE_SIMILARITY`. Confidence is the Jaccard similarity. If there are more than
           `MAX_COMPARED_STRUCTURES` distinct structures, it is the most similar of as many candidates.
        3. `url`: a state of that URL, addressable and least deep first. Confidence is the similarity if a structure is
           given, otherwise one over the number of states that share the URL.
        4. `none`.

        Parameters
        ----------
        url
            URL of the page.
        structure
            Hashes of its exposed elements; None if unknown.

        Returns
        -------
        LocatedState
            The state, if one was found.
        """
        canonical = normalize_url(url, self._policy)
        page_url = self._page_urls.get(canonical, canonical)
        same_url = self._by_url.get(page_url, [])
        if structure is None:
            return LocatedState(self._nodes[same_url[0]].id, "url", 1 / len(same_url)) if same_url else _NOT_LOCATED
        exact = node_id(structure, canonical)
        if exact in self._graph:
            return LocatedState(exact, "exact", 1.0)
        merge = self._merges.get(exact)
        if merge is not None and merge.reason != REPRESENTED_PAGE:
            return LocatedState(merge.kept, "exact", 1.0)
        template = url_template(page_url)
        for kind, key, group in (
            ("url", page_url, same_url),
            ("template", template, self._by_template.get(template, [])),
        ):
            if group:
                nearest, score = self._structure_index((kind, key), group).nearest(structure)
                if score >= MIN_STRUCTURE_SIMILARITY:
                    return LocatedState(self._nodes[group[nearest]].id, "structure", score)
        if not same_url:
            return _NOT_LOCATED
        first = self._nodes[same_url[0]]
        return LocatedState(first.id, "url", similarity(structure, first.structure))

    def _structure_index(self, key: tuple[str, str], group: list[int]) -> _StructureIndex:
        """Return the index of a group, built on first use; two threads may both build it."""
        if (known := self._structure_indexes.get(key)) is None:
            known = self._structure_indexes[key] = _StructureIndex([self._nodes[number] for number in group])
        return known


class _StructureIndex:
    """Distinct structures of a group of states, encoded as numbers, so that many are compared with a page at once."""

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
        """Return the state with the most similar structure (`similarity`) and its score; of equals the first."""
        distinct = set(structure)
        codes = np.fromiter((c for e in distinct if (c := self._codes.get(e)) is not None), np.intp)
        rows = np.arange(len(self._states)) if len(self._states) <= MAX_COMPARED_STRUCTURES else self._candidates(codes)
        known = np.zeros(len(self._codes), dtype=bool)
        known[codes] = True
        shared = np.array([known[self._elements[self._ends[r] : self._ends[r + 1]]].sum() for r in rows], dtype=float)
        union = len(distinct) + self._sizes[rows] - shared
        scores = np.ones(len(rows))
        np.divide(shared, union, out=scores, where=union > 0)
        best = int(scores.argmax())
        return int(self._states[rows[best]]), float(scores[best])

    def _candidates(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the structures that share most of the rarest elements of a page, in the order of the group."""
        starts, rows = self._postings
        rarest = codes[np.argsort(np.diff(starts)[codes], kind="stable")[:RAREST_ELEMENTS]]
        shared = np.zeros(len(self._states), dtype=np.int64)
        for code in rarest:
            shared[rows[starts[code] : starts[code + 1]]] += 1
        best = np.argpartition(-shared, MAX_COMPARED_STRUCTURES)[:MAX_COMPARED_STRUCTURES]
        return np.sort(best)

    @cached_property
    def _postings(self) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Posting lists: for every element the offset of its list, and the structures of all lists in a row."""
        owners = np.repeat(np.arange(len(self._states), dtype=np.int32), self._sizes)
        order = np.argsort(self._elements, kind="stable")
        starts = np.searchsorted(self._elements[order], np.arange(len(self._codes) + 1))
        return starts, owners[order]


def _indices_by_key(keys: Iterable[str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    return groups
