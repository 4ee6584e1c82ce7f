"""What changed from one version of a map to another? States and edges with a verdict each, and what became of paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from index.graph.model import Action, Edge
from index.graph.multigraph import InteractionGraph
from index.graph.observation import Observation
from index.graph.pairing import name_key, paired
from index.graph.recognition import Recognition
from index.graph.succession import Texts, merged, page_names, successors

StateVerdict = Literal["match", "moved", "changed", "gone", "added"]
EdgeVerdict = Literal["match", "moved", "changed", "gone", "added", "session_dependent", "non_deterministic"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two maps.

    Attributes
    ----------
    texts : what a state shows: names of texts, with counts. Texts that are equal but for noise share a name.
    noise : by URL, names of texts that come and go by themselves.
    """

    graph: InteractionGraph
    observations: Mapping[str, Observation]
    recognition: Recognition
    texts: Callable[[Observation], Texts]
    noise: Callable[[str], Collection[str]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class StateChange:
    """One state, before and after; its id is empty where there is none.

    Attributes
    ----------
    verdict : `match`: shows the same under the same id. `moved`: shows the same under another id (its URL or its
        structure is another one). `changed`: shows something else.
    added, removed : texts that only one of both shows.
    """

    verdict: StateVerdict
    before: str = ""
    after: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """One walked edge, before and after."""

    verdict: EdgeVerdict
    before: Edge | None = None
    after: Edge | None = None


@dataclass(frozen=True, slots=True)
class MapDiff:
    """All states and walked edges of both maps, once each.

    Attributes
    ----------
    successors : ids of the newer map by those of the older one. Of states that are one by now, which have the same,
        one goes on and the others are gone.
    broken : states whose shortest path from the start had an edge that is gone or leads elsewhere, with that edge.
    """

    states: tuple[StateChange, ...]
    edges: tuple[EdgeChange, ...]
    successors: Mapping[str, str] = field(default_factory=dict)
    broken: tuple[tuple[str, Edge], ...] = ()

    def counts(self) -> dict[str, dict[str, int]]:
        """How many states and edges there are of each verdict."""
        return {
            "states": dict(sorted(Counter(change.verdict for change in self.states).items())),
            "edges": dict(sorted(Counter(change.verdict for change in self.edges).items())),
        }


def compare(old: Side, new: Side, unstable: Mapping[tuple[str, ...], EdgeVerdict] | None = None) -> MapDiff:
    """Compare two maps of one site.

    Parameters
    ----------
    unstable : edges of the newer map that were found not to lead to one place: by source, action (as text), and
        where its element stands (`standing`). Where versions lack the last, an action counts if no other of its source
        is called like it.
    """
    shown = [{node_id: side.texts(seen) for node_id, seen in side.observations.items()} for side in (old, new)]
    found = successors(old.graph, new.graph, (shown[0], shown[1]), new.recognition)
    states = [_state(before, found.get(before, ""), old, new) for before in old.graph.nodes]
    known = set(found.values())
    states += [StateChange("added", after=after) for after in new.graph.nodes if after not in known]
    leads = {**merged(old.graph, new.graph, new.recognition), **found}
    edges = list(_edges(old.graph, new.graph, found, leads, unstable or {}))
    return MapDiff(tuple(states), tuple(edges), leads, tuple(_broken(old.graph, edges)))


def standing(action: Action) -> str:
    """Where the element of an action stands in its page: XPaths of the frames that lead to it, and its own."""
    return " > ".join((*action.frame, action.xpath))


def _state(before: str, after: str, old: Side, new: Side) -> StateChange:
    if not after:
        return StateChange("gone", before)
    seen = old.observations.get(before), new.observations.get(after)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    if seen[0] is not None and seen[1] is not None:
        noise = {*old.noise(seen[0].url), *new.noise(seen[1].url), *new.noise(seen[0].url)}
        first, second = Counter(old.texts(seen[0])), Counter(new.texts(seen[1]))
        added = tuple(_said(new, seen[1], {name for name in second - first if name not in noise}))
        removed = tuple(_said(old, seen[0], {name for name in first - second if name not in noise}))
    verdict: StateVerdict = "changed" if added or removed else "match" if before == after else "moved"
    return StateChange(verdict, before, after, added, removed)


def _said(side: Side, seen: Observation, names: Collection[str]) -> Iterator[str]:
    """The texts that these names stand for, in reading order, each once."""
    said = set[str]()
    if names:
        for segment in seen.segments:
            (name,) = side.texts(Observation("", "", "", (segment,))) or ("",)
            if name in names and name not in said:
                said.add(name)
                yield segment.text


def _edges(
    old: InteractionGraph,
    new: InteractionGraph,
    found: Mapping[str, str],
    leads: Mapping[str, str],
    unstable: Mapping[tuple[str, ...], EdgeVerdict],
) -> Iterator[EdgeChange]:
    before, after = [edge for edge in old.edges if not edge.inherited], list(new.edges)
    pairs = paired(before, after, found, leads, page_names(old, new))
    unstable = dict(_located(unstable, after)) if unstable else {}
    for place, edge in enumerate(before):
        if place in pairs:
            other = after[pairs[place]]
            yield EdgeChange(_verdict(edge, other, leads.get(edge.target), unstable), edge, other)
        else:
            yield EdgeChange("gone", edge)
    used = set(pairs.values())
    for place, edge in enumerate(after):
        if not edge.inherited and place not in used:
            yield EdgeChange("added", after=edge)


def _verdict(
    edge: Edge, after: Edge, target: str | None, unstable: Mapping[tuple[str, ...], EdgeVerdict]
) -> EdgeVerdict:
    if unstable and (known := unstable.get(_name(after))):
        return known
    if after.target != target or name_key(edge.action) != name_key(after.action):
        return "changed"
    return "match" if (edge.source, edge.action) == (after.source, after.action) else "moved"


def _located(
    unstable: Mapping[tuple[str, ...], EdgeVerdict], edges: Iterable[Edge]
) -> Iterator[tuple[tuple[str, ...], EdgeVerdict]]:
    """Unstable edges, each with the place of its element: of those that lack it, only what cannot be another."""
    places: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for edge in edges:
        name = _name(edge)
        places.setdefault(name[:2], set()).add(name)
    for name, verdict in unstable.items():
        if len(name) > 2:
            yield name, verdict
        elif len(known := places.get(name, ())) == 1:
            yield from ((each, verdict) for each in known)


def _name(edge: Edge) -> tuple[str, ...]:
    return (edge.source, str(edge.action), standing(edge.action))


def _broken(old: InteractionGraph, edges: Collection[EdgeChange]) -> Iterator[tuple[str, Edge]]:
    """States of the older map to which its first way leads no more, in the order in which they were found."""
    lost = {id(e.before) for e in edges if e.before is not None and e.verdict in {"gone", "changed"}}
    first: dict[str, Edge] = {}
    for edge in old.edges:
        if not edge.inherited and edge.target not in {edge.source, old.start}:
            first.setdefault(edge.target, edge)
    for node_id in old.nodes:
        here, passed = node_id, set[str]()
        while here in first and here not in passed:
            passed.add(here)
            if id(first[here]) in lost:
                yield node_id, first[here]
                break
            here = first[here].source
