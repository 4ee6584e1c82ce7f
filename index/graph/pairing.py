"""Which edge of a newer map is which of an older one? Elements may share a name, and change their places."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from index.graph.model import Action, Edge
from index.graph.succession import link_key
from index.graph.tokens import PageNames

#: What makes two elements the same; None: this key says nothing of the element.
Key = Callable[[Action], Hashable | None]


def paired(
    old: Sequence[Edge],
    new: Sequence[Edge],
    found: Mapping[str, str],
    leads: Mapping[str, str],
    names: PageNames,
) -> dict[int, int]:
    """For edges of `old` their successors in `new`, by place in both; no two have the same.

    Each rule takes all edges before the next one does, the surest first, so that no element takes what is rightly
    another's: elements of a list share their name, and each has the place of another when one of them leaves. What an
    element leads to tells more than where it stands. The order of the edges does not matter.

    Parameters
    ----------
    new : edges that were walked are preferred to inherited ones.
    found : states of the newer map by those of the older one; no two have the same.
    leads : the same of all states that an edge may lead to, those included that are one by now.
    names : of the pages that links lead to.
    """
    pairs = _Pairs(old, new, found, leads)
    pairs.join(_itself, same_target=True)
    pairs.join(lambda action: link_key(action, names), same_target=True)
    # A link is known by its address, wherever that leads by now.
    pairs.join(lambda action: action if action.target else None)
    pairs.join(lambda action: link_key(action, names) if action.target else None)
    pairs.join(name_key, same_target=True)
    pairs.join(_place_key, same_target=True)
    pairs.join(_itself)
    pairs.join_all(name_key)
    # A link that was renamed, and stands elsewhere.
    pairs.join(lambda action: _address_key(action, names), same_target=True)
    # What has another name and leads elsewhere is another element, though it stands in this one's place.
    pairs.join(lambda action: (name_key(action), _place_key(action)))
    return pairs.found


def name_key(action: Action) -> tuple[str, ...]:
    """What a person calls an element, and what is done to it."""
    return (action.kind, action.value, action.role, action.name)


def _place_key(action: Action) -> Hashable:
    return (action.kind, action.value, action.role, action.frame, action.xpath)


def _address_key(action: Action, names: PageNames) -> Hashable | None:
    return (action.kind, action.value, action.role, names.of(action.target)) if action.target else None


def _itself(action: Action) -> Hashable:
    return action


class _Pairs:
    """Edges of two maps that belong together, found one rule after the other. Each rule is linear in what is left."""

    def __init__(
        self, old: Sequence[Edge], new: Sequence[Edge], found: Mapping[str, str], leads: Mapping[str, str]
    ) -> None:
        self._old = old
        self._new = new
        self._states = found
        self._leads = leads
        sources = {found[edge.source] for edge in old if edge.source in found}
        self._left = _in_order(old, (i for i, edge in enumerate(old) if edge.source in found))
        self._free = _in_order(new, (i for i, edge in enumerate(new) if edge.source in sources))
        self.found: dict[int, int] = {}

    def join(self, key: Key, *, same_target: bool = False, among: Collection[Hashable] | None = None) -> None:
        """Join edges that have a key on the same state in common, in the order of places.

        Parameters
        ----------
        same_target : only those that lead to the same state.
        among : only elements with such a state and key.
        """
        if not self._left:
            return
        free: dict[Hashable, deque[int]] = defaultdict(deque)
        for place in self._free:
            edge = self._new[place]
            if (named := key(edge.action)) is not None:
                free[edge.source, named, edge.target if same_target else None].append(place)
        left, taken = [], set()
        for place in self._left:
            edge = self._old[place]
            source, named, target = self._states[edge.source], key(edge.action), self._leads.get(edge.target)
            others = free.get((source, named, target if same_target else None))
            is_open = named is not None and (target is not None or not same_target)
            if others and is_open and (among is None or (source, named) in among):
                self.found[place] = others.popleft()
                taken.add(self.found[place])
            else:
                left.append(place)
        if taken:
            self._left, self._free = left, [place for place in self._free if place not in taken]

    def join_all(self, key: Key) -> None:
        """Join elements that have their key for themselves on both states, or with equally many, none of them joined.

        Where some are, the others of a list may have left it, or be new in it.
        """
        if not self._left:
            return
        then, now = defaultdict[Hashable, set[Action]](set), defaultdict[Hashable, set[Action]](set)
        for edge in self._old:
            then[self._states.get(edge.source), key(edge.action)].add(edge.action)
        for edge in self._new:
            now[edge.source, key(edge.action)].add(edge.action)
        joined = {
            (state, key(edge.action))
            for old, new in self.found.items()
            for edge, state in (
                (self._old[old], self._states[self._old[old].source]),
                (self._new[new], self._new[new].source),
            )
        }
        equal = {each for each, actions in then.items() if len(actions) == len(now.get(each, ()))}
        self.join(key, among={each for each in equal if len(then[each]) == 1 or each not in joined})


def _in_order(edges: Sequence[Edge], places: Iterable[int]) -> list[int]:
    """Walked edges first, then by the element and its place among those of its name."""

    def order(place: int) -> tuple[bool, Action, str]:
        edge = edges[place]
        return edge.inherited, edge.action, edge.target

    return sorted(places, key=order)
