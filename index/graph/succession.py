"""Which state of a newer map is which state of an older one? A changed page has another id, and is still that page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from index.graph.identity import similarity
from index.graph.model import Action, Node
from index.graph.multigraph import InteractionGraph
from index.graph.recognition import NO_RECOGNITION, Recognition
from index.graph.tokens import PageNames

#: What a state shows, whatever it is named by: texts with counts.
Texts = Mapping[str, int]

#: A successor of a parent, what makes an action on it the same, and the address that this leads to.
_Way = tuple[str, Any, str]

#: A page under another address is the same page when so much of what tells it apart is the same (Jaccard).
_MOVED = 0.7
#: Also when something was added or taken away, all else is the same, and that is at least so many texts.
_MOVED_IN_PART, _KEPT_TEXTS = 0.5, 2
#: A state that stays at its address is the same one when structures or texts are this much alike, nothing better found.
_STAYED = 0.2
#: What more states than this show tells none of them apart.
_COMMON_SHARE, _COMMON_STATES = 0.3, 3


def successors(
    old: InteractionGraph,
    new: InteractionGraph,
    texts: tuple[Mapping[str, Texts], Mapping[str, Texts]],
    recognition: Recognition = NO_RECOGNITION,
) -> dict[str, str]:
    """For states of `old` their successors in `new`; those that are gone are not there. No two have the same.

    The same id is the same state. Else a look at the old one may have been merged with one of the new ones: of several
    that are one by now, the one with its id goes on, or else the first. Else the way to it leads to it: the same action
    on the successor of its parent, at the same address. Else what is most alike at the same address, and at last, at
    another address, what shows nearly the same.

    Parameters
    ----------
    texts : what the states of both show, by id.
    recognition : of the newer map.
    """
    pairs = _Pairs(old, new, texts, page_names(old, new))
    # All identities first: a look that was merged with a state that is still there must not take it.
    for before in old.nodes:
        pairs.add(before, before)
    for before, after in merged(old, new, recognition).items():
        if not pairs.add(before, after):
            pairs.leave_out(before)
    pairs.by_address()
    pairs.by_way()
    pairs.most_alike()
    pairs.moved()
    return pairs.found


def merged(old: InteractionGraph, new: InteractionGraph, recognition: Recognition) -> dict[str, str]:
    """For states of `old` that were taken for a state of `new` under another id, that state."""
    kept = {before: recognition.canonical(before) for before in old.nodes if before not in new.nodes}
    return {before: after for before, after in kept.items() if after in new.nodes}


def composed(
    earlier: Mapping[str, str], latest: Mapping[str, str], *, live: Collection[str], gone: Collection[str]
) -> dict[str, str]:
    """What became of the ids of all earlier versions: the present id, or nothing.

    Parameters
    ----------
    earlier : the same for the version before.
    latest : successors of the states of that version.
    live, gone : ids of the newest version, and of the version before that have no successor.
    """
    after = {**latest, **dict.fromkeys(gone, "")}
    lineage = {old: after.get(present, "") for old, present in earlier.items()} | after
    return {old: present for old, present in lineage.items() if old not in live}


def page_names(old: InteractionGraph, new: InteractionGraph) -> PageNames:
    """What names a page in two maps of one site: what names it in either."""
    return PageNames(*((node.url for node in graph.nodes.values()) for graph in (old, new)))


def link_key(action: Action, names: PageNames) -> tuple[Any, ...]:
    """What makes two elements on different pages the same, wherever they stand: what they say and where they lead."""
    return (action.kind, action.value, action.role, action.name, action.target and names.of(action.target))


class _Pairs:
    """States of two maps that belong together, found one rule after the other."""

    def __init__(
        self,
        old: InteractionGraph,
        new: InteractionGraph,
        texts: tuple[Mapping[str, Texts], Mapping[str, Texts]],
        names: PageNames,
    ) -> None:
        self._old = old
        self._new = new
        self._texts = texts
        self._names = names
        self.found: dict[str, str] = {}
        self._taken: set[str] = set()
        self._left_out: set[str] = set()

    def add(self, before: str, after: str) -> bool:
        """Join two states, unless one of them is another's already or unknown."""
        if before in self.found or after in self._taken or after not in self._new.nodes:
            return False
        self.found[before] = after
        self._taken.add(after)
        return True

    def leave_out(self, before: str) -> None:
        """Look for no successor any more: it is known that the state is another's by now."""
        self._left_out.add(before)

    def _is_left(self, before: str) -> bool:
        return before not in self.found and before not in self._left_out

    def _left(self) -> Iterator[Node]:
        return (node for node in self._old.nodes.values() if self._is_left(node.id))

    def by_address(self) -> None:
        """One URL shows one page."""
        pages: dict[str, str] = {}
        for node in self._new.nodes.values():
            if node.addressable:
                pages.setdefault(self._names.of(node.url), node.id)
        for node in self._left():
            if node.addressable:
                self.add(node.id, pages.get(self._names.of(node.url), ""))

    def by_way(self) -> None:
        """The same action on the successor of the parent leads to the successor, when the address is the same.

        Where several elements of a page are called the same, what they show tells which is which.
        """
        led: dict[_Way, dict[str, None]] = defaultdict(dict)
        for edge in self._new.edges:
            url = self._names.of(self._new.nodes[edge.target].url)
            led[edge.source, link_key(edge.action, self._names), url][edge.target] = None
        progress = True
        while progress:
            progress = False
            ways: dict[_Way, dict[str, None]] = defaultdict(dict)
            for edge in self._old.edges:
                if not edge.inherited and self._is_left(edge.target) and edge.source in self.found:
                    url = self._names.of(self._old.nodes[edge.target].url)
                    ways[self.found[edge.source], link_key(edge.action, self._names), url][edge.target] = None
            # First what has its way for itself: a state may be reached by several ways.
            for way in sorted(ways, key=lambda way: len(ways[way]) + len(led.get(way, ()))):
                progress |= self._lead_to(ways[way], led.get(way, ()))

    def _lead_to(self, befores: Collection[str], afters: Collection[str]) -> bool:
        """Join states to which the same way leads; whether there were any."""
        known = len(self.found)
        # Another way that was looked at just now may lead to the same states.
        then = [before for before in befores if self._is_left(before)]
        now = [after for after in afters if after not in self._taken]
        if len(then) == len(now) == 1:
            return self.add(then[0], now[0])
        # What shows the same is found at once; only the others are compared each with each.
        showing: dict[frozenset[tuple[str, int]], list[str]] = defaultdict(list)
        for after in reversed(now):
            showing[frozenset(self._texts[1].get(after, {}).items())].append(after)
        for before in then:
            if same := showing.get(frozenset(self._texts[0].get(before, {}).items())):
                self.add(before, same.pop())
        left = [self._old.nodes[before] for before in then if self._is_left(before)]
        free = [self._new.nodes[after] for after in now if after not in self._taken]
        self._take_best(self._alike(left, free))
        return len(self.found) > known

    def most_alike(self) -> None:
        """At the same address."""
        at: dict[str, list[Node]] = defaultdict(list)
        for node in self._new.nodes.values():
            if node.id not in self._taken:
                at[self._names.of(node.url)].append(node)
        scored: list[tuple[float, str, str]] = []
        for node in self._left():
            scored += self._alike([node], at.get(self._names.of(node.url), ()))
        self._take_best(scored)

    def _alike(self, befores: Iterable[Node], afters: Collection[Node]) -> Iterator[tuple[float, str, str]]:
        """All pairs, with how alike they are, when that is enough to be the same state."""
        for node in befores:
            for other in afters:
                says = _likeness(self._texts[0].get(node.id, {}), self._texts[1].get(other.id, {}))
                built = similarity(node.structure, other.structure)
                if max(says, built) >= _STAYED:
                    yield says + built, node.id, other.id

    def moved(self) -> None:
        """At another address, what shows nearly the same."""
        # One measure for both: what tells in the larger map tells in the other one, too.
        most = max(_COMMON_SHARE * max(map(len, self._texts)), _COMMON_STATES)
        telling = [_telling(each, most) for each in self._texts]
        shows: dict[str, list[str]] = defaultdict(list)
        for after in self._new.nodes:
            if after not in self._taken:
                for text in telling[1].get(after, ()):
                    shows[text].append(after)
        scored = []
        for node in self._left():
            own = telling[0].get(node.id, {})
            others = {after for text in own for after in shows.get(text, ())}
            scored += [
                (likeness, node.id, after)
                for after in others
                if (likeness := _likeness(own, telling[1][after])) >= _MOVED
                or (likeness >= _MOVED_IN_PART and _holds(own, telling[1][after]))
            ]
        self._take_best(scored)

    def _take_best(self, scored: Iterable[tuple[float, str, str]]) -> None:
        for _, before, after in sorted(scored, key=lambda each: (-each[0], each[1], each[2])):
            self.add(before, after)


def _telling(texts: Mapping[str, Texts], most: float) -> dict[str, dict[str, int]]:
    """Of what each state shows, what at most so many states do."""
    often = Counter(text for shown in texts.values() for text in shown)
    return {
        node_id: {text: count for text, count in shown.items() if often[text] <= most}
        for node_id, shown in texts.items()
    }


def _holds(a: Texts, b: Texts) -> bool:
    """Whether one of two multisets is a part of the other, and large enough to say so."""
    less, more = sorted((Counter(a), Counter(b)), key=Counter.total)
    return less <= more and less.total() >= _KEPT_TEXTS


def _likeness(a: Texts, b: Texts) -> float:
    """Jaccard similarity of multisets."""
    union = sum((Counter(a) | Counter(b)).values())
    return sum((Counter(a) & Counter(b)).values()) / union if union else 0.0
