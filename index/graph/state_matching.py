"""Matching of the states of two versions of a map. A page whose content changed has another id and is the same page.

The state of the newer map that continues a state of the older one is its *successor*.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from waygraph.index.graph.identity import similarity
from waygraph.index.graph.model import Action, Node
from waygraph.index.graph.multigraph import InteractionGraph
from waygraph.index.graph.recognition import NO_RECOGNITION, Recognition
from waygraph.index.graph.url_tokens import PageNames

#: Names of the texts that a state shows, with counts. Any naming that is the same in both maps will do.
TextCounts = Mapping[str, int]

#: How a state is reached: the successor of its parent, the key of the action on it, and the page name it leads to.
_Route = tuple[str, Any, str]

#: Two states, preceded by their score.
_ScoredPair = tuple[float, str, str]

#: Jaccard similarity of distinctive texts from which on a page at another address is the same page.
_MOVED_SIMILARITY = 0.7
#: The same if texts were only added or only removed, and the smaller side has at least `_MIN_KEPT_TEXTS`.
_MOVED_IN_PART_SIMILARITY = 0.5
#: See `_MOVED_IN_PART_SIMILARITY`.
_MIN_KEPT_TEXTS = 2
#: Similarity of texts or of structures from which on two states at the same address may be the same state. It is low,
#: because it applies only to states for which no earlier rule found a successor.
_STAYED_SIMILARITY = 0.2
#: A text is not distinctive if more than this share of the larger map's states show it ...
_COMMON_SHARE = 0.3
#: ... and more states than this.
_COMMON_STATES = 3


def match_states(
    old: InteractionGraph,
    new: InteractionGraph,
    texts: tuple[Mapping[str, TextCounts], Mapping[str, TextCounts]],
    recognition: Recognition = NO_RECOGNITION,
) -> dict[str, str]:
    """Find the successors of the states of an older map in a newer one.

    The rules, in this order; each is applied to all states before the next one:

    1. The same id is the same state.
    2. A snapshot of the old state may have been merged into a new state. If several states were merged into one, the
       one with its id continues, else the first.
    3. The same URL, if loading it reproduces both states.
    4. The same action on the successor of the parent state leads to the same address.
    5. The most similar state at the same address.
    6. A state at another address that shows nearly the same texts.

    Parameters
    ----------
    old
        The older map.
    new
        The newer map.
    texts
        For both maps, by state id, the texts that the state shows.
    recognition
        Recognition of the newer map.

    Returns
    -------
    dict of str to str
        New ids by old ids, without those that are gone; no two are equal.
    """
    matching = _StateMatching(old, new, texts, page_names_of(old, new))
    # All equal ids first: a snapshot that was merged into a state that still exists must not take that state.
    for before in old.nodes:
        matching.add(before, before)
    for before, after in merged_states(old, new, recognition).items():
        if not matching.add(before, after):
            matching.exclude(before)
    matching.match_urls()
    matching.match_routes()
    matching.match_similar()
    matching.match_moved()
    return matching.successors


def merged_states(old: InteractionGraph, new: InteractionGraph, recognition: Recognition) -> dict[str, str]:
    """Return the states of `old` that were recognised as a state of `new` with another id, and that state."""
    kept = {before: recognition.canonical(before) for before in old.nodes if before not in new.nodes}
    return {before: after for before, after in kept.items() if after in new.nodes}


def compose_lineage(
    earlier: Mapping[str, str], latest: Mapping[str, str], *, live: Collection[str], gone: Collection[str]
) -> dict[str, str]:
    """Extend the lineage of the previous version by one version.

    Parameters
    ----------
    earlier
        Lineage of the previous version.
    latest
        Successors of the states of the previous version.
    live
        Ids of the states of the newest version.
    gone
        Ids of the states of the previous version that have no successor.

    Returns
    -------
    dict of str to str
        For the ids of all earlier versions the present id; empty if the state is gone.
    """
    after = {**latest, **dict.fromkeys(gone, "")}
    lineage = {old: after.get(present, "") for old, present in earlier.items()} | after
    return {old: present for old, present in lineage.items() if old not in live}


def page_names_of(old: InteractionGraph, new: InteractionGraph) -> PageNames:
    """Return the page names in two maps of one site: a part of a URL that identifies pages in either does in both."""
    return PageNames(*((node.url for node in graph.nodes.values()) for graph in (old, new)))


def link_key(action: Action, names: PageNames) -> tuple[Any, ...]:
    """Return the key that equal elements on different pages share: their name, and the page they link to."""
    return (action.kind, action.value, action.role, action.name, action.target and names.of(action.target))


class _StateMatching:
    """Matched states of two maps, extended rule by rule."""

    def __init__(
        self,
        old: InteractionGraph,
        new: InteractionGraph,
        texts: tuple[Mapping[str, TextCounts], Mapping[str, TextCounts]],
        names: PageNames,
    ) -> None:
        self._old = old
        self._new = new
        self._old_texts, self._new_texts = texts
        self._names = names
        self.successors: dict[str, str] = {}
        self._taken: set[str] = set()
        self._excluded: set[str] = set()

    def add(self, before: str, after: str) -> bool:
        """Match two states; False, and no change, if either is matched already or `after` is unknown."""
        if before in self.successors or after in self._taken or after not in self._new.nodes:
            return False
        self.successors[before] = after
        self._taken.add(after)
        return True

    def exclude(self, before: str) -> None:
        """Leave a state without a successor: it was merged into a state that continues another one."""
        self._excluded.add(before)

    def _is_unmatched(self, before: str) -> bool:
        return before not in self.successors and before not in self._excluded

    def _unmatched(self) -> Iterator[Node]:
        return (node for node in self._old.nodes.values() if self._is_unmatched(node.id))

    def match_urls(self) -> None:
        """Match addressable states by URL: one URL shows one page."""
        pages: dict[str, str] = {}
        for node in self._new.nodes.values():
            if node.addressable:
                pages.setdefault(self._names.of(node.url), node.id)
        for node in self._unmatched():
            if node.addressable:
                self.add(node.id, pages.get(self._names.of(node.url), ""))

    def match_routes(self) -> None:
        """Match states that the same action on matched parents leads to, if their addresses are equal.

        If several elements of a page have the same name, the texts of their targets decide which is which.
        """
        new_routes: dict[_Route, dict[str, None]] = defaultdict(dict)
        for edge in self._new.edges:
            url = self._names.of(self._new.nodes[edge.target].url)
            new_routes[edge.source, link_key(edge.action, self._names), url][edge.target] = None
        progress = True
        while progress:
            progress = False
            routes: dict[_Route, dict[str, None]] = defaultdict(dict)
            for edge in self._old.edges:
                if not edge.inherited and self._is_unmatched(edge.target) and edge.source in self.successors:
                    url = self._names.of(self._old.nodes[edge.target].url)
                    routes[self.successors[edge.source], link_key(edge.action, self._names), url][edge.target] = None
            # Least ambiguous routes first: a state may be reached by several.
            for route in sorted(routes, key=lambda route: len(routes[route]) + len(new_routes.get(route, ()))):
                progress |= self._match_targets(routes[route], new_routes.get(route, ()))

    def _match_targets(self, befores: Collection[str], afters: Collection[str]) -> bool:
        """Match states that the same route leads to; return whether any were matched."""
        known = len(self.successors)
        # A route that was handled a moment ago may lead to the same states.
        old = [before for before in befores if self._is_unmatched(before)]
        new = [after for after in afters if after not in self._taken]
        if len(old) == len(new) == 1:
            return self.add(old[0], new[0])
        # States with equal texts are matched by lookup; only the others are compared each with each.
        by_texts: dict[frozenset[tuple[str, int]], list[str]] = defaultdict(list)
        for after in reversed(new):
            by_texts[frozenset(self._new_texts.get(after, {}).items())].append(after)
        for before in old:
            if same := by_texts.get(frozenset(self._old_texts.get(before, {}).items())):
                self.add(before, same.pop())
        left = [self._old.nodes[before] for before in old if self._is_unmatched(before)]
        free = [self._new.nodes[after] for after in new if after not in self._taken]
        self._add_best(self._similar_pairs(left, free))
        return len(self.successors) > known

    def match_similar(self) -> None:
        """Match the most similar states at the same address."""
        by_page: dict[str, list[Node]] = defaultdict(list)
        for node in self._new.nodes.values():
            if node.id not in self._taken:
                by_page[self._names.of(node.url)].append(node)
        scored: list[_ScoredPair] = []
        for node in self._unmatched():
            scored += self._similar_pairs([node], by_page.get(self._names.of(node.url), ()))
        self._add_best(scored)

    def _similar_pairs(self, befores: Iterable[Node], afters: Collection[Node]) -> Iterator[_ScoredPair]:
        """Score all pairs, and yield those that are similar enough to be the same state."""
        for node in befores:
            for other in afters:
                by_texts = _text_similarity(self._old_texts.get(node.id, {}), self._new_texts.get(other.id, {}))
                by_structure = similarity(node.structure, other.structure)
                if max(by_texts, by_structure) >= _STAYED_SIMILARITY:
                    yield by_texts + by_structure, node.id, other.id

    def match_moved(self) -> None:
        """Match states at different addresses that show nearly the same distinctive texts."""
        # One limit for both maps: a text that is distinctive in the larger map is so in the other one, too.
        limit = max(_COMMON_SHARE * max(len(self._old_texts), len(self._new_texts)), _COMMON_STATES)
        old, new = _distinctive(self._old_texts, limit), _distinctive(self._new_texts, limit)
        showing: dict[str, list[str]] = defaultdict(list)
        for after in self._new.nodes:
            if after not in self._taken:
                for text in new.get(after, ()):
                    showing[text].append(after)
        scored: list[_ScoredPair] = []
        for node in self._unmatched():
            own = old.get(node.id, {})
            others = {after for text in own for after in showing.get(text, ())}
            scored += [
                (score, node.id, after)
                for after in others
                if (score := _text_similarity(own, new[after])) >= _MOVED_SIMILARITY
                or (score >= _MOVED_IN_PART_SIMILARITY and _is_extension(own, new[after]))
            ]
        self._add_best(scored)

    def _add_best(self, scored: Iterable[_ScoredPair]) -> None:
        """Match pairs greedily, the highest score first."""
        for _, before, after in sorted(scored, key=lambda pair: (-pair[0], pair[1], pair[2])):
            self.add(before, after)


def _distinctive(texts: Mapping[str, TextCounts], limit: float) -> dict[str, dict[str, int]]:
    """Return for every state those of its texts that at most `limit` states show."""
    frequencies = Counter(text for shown in texts.values() for text in shown)
    return {
        node_id: {text: count for text, count in shown.items() if frequencies[text] <= limit}
        for node_id, shown in texts.items()
    }


def _is_extension(a: TextCounts, b: TextCounts) -> bool:
    """Return whether one of two multisets contains the other, and the smaller one is large enough to be a sign."""
    smaller, larger = sorted((Counter(a), Counter(b)), key=Counter.total)
    return smaller <= larger and smaller.total() >= _MIN_KEPT_TEXTS


def _text_similarity(a: TextCounts, b: TextCounts) -> float:
    """Return the Jaccard similarity of two multisets; 0 if both are empty."""
    union = sum((Counter(a) | Counter(b)).values())
    return sum((Counter(a) & Counter(b)).values()) / union if union else 0.0
