"""Matching of the edges of two versions of a map. Elements may share a name, and may move within their page."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from waygraph.index.graph.model import Action, Edge
from waygraph.index.graph.state_matching import link_key
from waygraph.index.graph.url_tokens import PageNames

#: Returns the key that two equal elements have in common, or None if the key does not apply to the element.
ElementKey = Callable[[Action], Hashable | None]


def match_edges(
    old: Sequence[Edge],
    new: Sequence[Edge],
    states: Mapping[str, str],
    targets: Mapping[str, str],
    names: PageNames,
) -> dict[int, int]:
    """Match the edges of an older map with those of a newer one.

    Each rule is applied to all edges before the next one, the most certain rule first. Otherwise an element could take
    the match that belongs to another: the elements of a list share their name, and each takes the position of another
    when one of them is removed. The state that an element leads to identifies it better than its position does. The
    order of the edges does not matter.

    Parameters
    ----------
    old
        Edges of the older map that were walked.
    new
        Edges of the newer map; walked edges are preferred to inherited ones.
    states
        States of the newer map by those of the older one; no two are equal.
    targets
        The same for all states that an edge may lead to, including states that were merged into one since.
    names
        Names of the pages that links lead to.

    Returns
    -------
    dict of int to int
        Positions in `new` by positions in `old`; no two are equal.
    """
    matching = _EdgeMatching(old, new, states, targets)
    matching.match(_whole_action, same_target=True)
    matching.match(lambda action: link_key(action, names), same_target=True)
    # A link is identified by its address, wherever that leads to now.
    matching.match(lambda action: action if action.target else None)
    matching.match(lambda action: link_key(action, names) if action.target else None)
    matching.match(name_key, same_target=True)
    matching.match(_position_key, same_target=True)
    matching.match(_whole_action)
    matching.match_unambiguous(name_key)
    # A link that was renamed and moved.
    matching.match(lambda action: _address_key(action, names), same_target=True)
    # An element with another name that leads elsewhere is another element, even at the same position.
    matching.match(lambda action: (name_key(action), _position_key(action)))
    return matching.matches


def name_key(action: Action) -> tuple[str, ...]:
    """Return what is done, and the role and name of the element."""
    return (action.kind, action.value, action.role, action.name)


def _position_key(action: Action) -> Hashable:
    return (action.kind, action.value, action.role, action.frame, action.xpath)


def _address_key(action: Action, names: PageNames) -> Hashable | None:
    return (action.kind, action.value, action.role, names.of(action.target)) if action.target else None


def _whole_action(action: Action) -> Hashable:
    return action


class _EdgeMatching:
    """Matched edges of two maps, extended rule by rule. A rule takes time linear in the number of unmatched edges."""

    def __init__(
        self, old: Sequence[Edge], new: Sequence[Edge], states: Mapping[str, str], targets: Mapping[str, str]
    ) -> None:
        self._old = old
        self._new = new
        self._states = states
        self._targets = targets
        sources = {states[edge.source] for edge in old if edge.source in states}
        self._unmatched_old = _in_order(old, (i for i, edge in enumerate(old) if edge.source in states))
        self._unmatched_new = _in_order(new, (i for i, edge in enumerate(new) if edge.source in sources))
        self.matches: dict[int, int] = {}

    def match(self, key: ElementKey, *, same_target: bool = False, among: Collection[Hashable] | None = None) -> None:
        """Match edges of the same state that have a key in common, in the order of their positions.

        Parameters
        ----------
        key
            The key.
        same_target
            Whether both edges must lead to the same state.
        among
            Pairs of state and key to which the rule is restricted; None: all.
        """
        if not self._unmatched_old:
            return
        candidates: dict[Hashable, deque[int]] = defaultdict(deque)
        for index in self._unmatched_new:
            edge = self._new[index]
            if (value := key(edge.action)) is not None:
                candidates[edge.source, value, edge.target if same_target else None].append(index)
        left, taken = [], set()
        for index in self._unmatched_old:
            edge = self._old[index]
            source, value, target = self._states[edge.source], key(edge.action), self._targets.get(edge.target)
            others = candidates.get((source, value, target if same_target else None))
            applies = value is not None and (target is not None or not same_target)
            if others and applies and (among is None or (source, value) in among):
                self.matches[index] = others.popleft()
                taken.add(self.matches[index])
            else:
                left.append(index)
        if taken:
            self._unmatched_old = left
            self._unmatched_new = [index for index in self._unmatched_new if index not in taken]

    def match_unambiguous(self, key: ElementKey) -> None:
        """Match elements whose key is unique on both states, or shared by equally many elements, none of them matched.

        If some elements with the key are matched, the others may have left the list or be new in it.
        """
        if not self._unmatched_old:
            return
        before, after = defaultdict[Hashable, set[Action]](set), defaultdict[Hashable, set[Action]](set)
        for edge in self._old:
            before[self._states.get(edge.source), key(edge.action)].add(edge.action)
        for edge in self._new:
            after[edge.source, key(edge.action)].add(edge.action)
        matched = {
            (state, key(edge.action))
            for old, new in self.matches.items()
            for edge, state in (
                (self._old[old], self._states[self._old[old].source]),
                (self._new[new], self._new[new].source),
            )
        }
        equal = {each for each, actions in before.items() if len(actions) == len(after.get(each, ()))}
        self.match(key, among={each for each in equal if len(before[each]) == 1 or each not in matched})


def _in_order(edges: Sequence[Edge], indices: Iterable[int]) -> list[int]:
    """Sort edges: walked ones first, then by element, which includes its position among those of the same name."""

    def order(index: int) -> tuple[bool, Action, str]:
        edge = edges[index]
        return edge.inherited, edge.action, edge.target

    return sorted(indices, key=order)
