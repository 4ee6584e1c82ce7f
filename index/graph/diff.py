"""Differences between two versions of a map: a verdict for every state, edge and tool, and paths that broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from waygraph.index.graph.edge_matching import match_edges, name_key
from waygraph.index.graph.model import Action, Edge
from waygraph.index.graph.multigraph import InteractionGraph
from waygraph.index.graph.observation import Observation
from waygraph.index.graph.recognition import Recognition
from waygraph.index.graph.state_matching import TextCounts, match_states, merged_states, page_names_of
from waygraph.index.graph.tool import Tool
from waygraph.index.graph.tool_diff import ToolChange, diff_tools

StateVerdict = Literal["match", "moved", "changed", "gone", "added"]
EdgeVerdict = Literal["match", "moved", "changed", "gone", "added", "session_dependent", "non_deterministic"]


@dataclass(frozen=True, slots=True)
class ComparedMap:
    """One of the two maps that are compared.

    Attributes
    ----------
    graph
        States and edges.
    observations
        Observations by state id.
    recognition
        Recognition of the map.
    texts
        Returns the names of the texts that an observation shows, with counts. Texts that differ in noise only share a
        name.
    noise
        Returns, by URL, the names of texts that come and go by themselves.
    tools
        Tools by id.
    """

    graph: InteractionGraph
    observations: Mapping[str, Observation]
    recognition: Recognition
    texts: Callable[[Observation], TextCounts]
    noise: Callable[[str], Collection[str]] = lambda _: ()
    tools: Mapping[str, Tool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateChange:
    """One state before and after.

    Attributes
    ----------
    verdict
        `match`: the same content under the same id. `moved`: the same content under another id (its URL or its
        structure changed). `changed`: other content. `gone` and `added`: in one of the maps only.
    before
        Id in the older map; empty if it was added.
    after
        Id in the newer map; empty if it is gone.
    added
        Texts that only the newer state shows.
    removed
        Texts that only the older state shows.
    """

    verdict: StateVerdict
    before: str = ""
    after: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """One walked edge before and after; None if it is not in that map."""

    verdict: EdgeVerdict
    before: Edge | None = None
    after: Edge | None = None


@dataclass(frozen=True, slots=True)
class MapDiff:
    """All states, walked edges and tools of two maps, each once.

    Attributes
    ----------
    states
        Changes of states.
    edges
        Changes of walked edges.
    successors
        Ids of the newer map by ids of the older one. If several states were merged into one, they have the same
        successor; one of them continues and the others are gone.
    broken
        States whose shortest path from the start has an edge that is gone or leads elsewhere, with that edge.
    tools
        Changes of tools.
    """

    states: tuple[StateChange, ...]
    edges: tuple[EdgeChange, ...]
    successors: Mapping[str, str] = field(default_factory=dict)
    broken: tuple[tuple[str, Edge], ...] = ()
    tools: tuple[ToolChange, ...] = ()

    def counts(self) -> dict[str, dict[str, int]]:
        """Count the states, the edges and the tools by verdict."""
        return {
            "states": dict(sorted(Counter(change.verdict for change in self.states).items())),
            "edges": dict(sorted(Counter(change.verdict for change in self.edges).items())),
            "tools": dict(sorted(Counter(change.verdict for change in self.tools).items())),
        }


def diff_maps(
    old: ComparedMap, new: ComparedMap, unstable: Mapping[tuple[str, ...], EdgeVerdict] | None = None
) -> MapDiff:
    """Compare two maps of one site.

    Parameters
    ----------
    old
        The older map.
    new
        The newer map.
    unstable
        Edges of the newer map that were found to lead to different states. Keys are source, action (as text) and
        `element_location`. Older versions lack the last; then the edge is used if no other action of its source has
        the same text.

    Returns
    -------
    MapDiff
        The differences.
    """
    texts = [{node_id: side.texts(shown) for node_id, shown in side.observations.items()} for side in (old, new)]
    matches = match_states(old.graph, new.graph, (texts[0], texts[1]), new.recognition)
    states = [_state_change(before, matches.get(before, ""), old, new) for before in old.graph.nodes]
    known = set(matches.values())
    states += [StateChange("added", after=after) for after in new.graph.nodes if after not in known]
    successors = {**merged_states(old.graph, new.graph, new.recognition), **matches}
    edges = list(_edge_changes(old.graph, new.graph, matches, successors, unstable or {}))
    tools = diff_tools(old.tools, new.tools, successors)
    return MapDiff(tuple(states), tuple(edges), successors, tuple(_broken_paths(old.graph, edges)), tools)


def element_location(action: Action) -> str:
    """Return the position of an action's element: the XPaths of its frames, and its own."""
    return " > ".join((*action.frame, action.xpath))


def _state_change(before: str, after: str, old: ComparedMap, new: ComparedMap) -> StateChange:
    if not after:
        return StateChange("gone", before)
    earlier, later = old.observations.get(before), new.observations.get(after)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    if earlier is not None and later is not None:
        noise = {*old.noise(earlier.url), *new.noise(later.url), *new.noise(earlier.url)}
        first, second = Counter(old.texts(earlier)), Counter(new.texts(later))
        added = tuple(_texts_named(new, later, {name for name in second - first if name not in noise}))
        removed = tuple(_texts_named(old, earlier, {name for name in first - second if name not in noise}))
    verdict: StateVerdict = "changed" if added or removed else "match" if before == after else "moved"
    return StateChange(verdict, before, after, added, removed)


def _texts_named(side: ComparedMap, observation: Observation, names: Collection[str]) -> Iterator[str]:
    """Yield the texts with these names in reading order, each once."""
    yielded = set[str]()
    if names:
        for segment in observation.segments:
            (name,) = side.texts(Observation("", "", "", (segment,))) or ("",)
            if name in names and name not in yielded:
                yielded.add(name)
                yield segment.text


def _edge_changes(
    old: InteractionGraph,
    new: InteractionGraph,
    states: Mapping[str, str],
    successors: Mapping[str, str],
    unstable: Mapping[tuple[str, ...], EdgeVerdict],
) -> Iterator[EdgeChange]:
    before, after = [edge for edge in old.edges if not edge.inherited], list(new.edges)
    matches = match_edges(before, after, states, successors, page_names_of(old, new))
    unstable = dict(_with_locations(unstable, after)) if unstable else {}
    for index, edge in enumerate(before):
        if index in matches:
            other = after[matches[index]]
            yield EdgeChange(_edge_verdict(edge, other, successors.get(edge.target), unstable), edge, other)
        else:
            yield EdgeChange("gone", edge)
    matched = set(matches.values())
    for index, edge in enumerate(after):
        if not edge.inherited and index not in matched:
            yield EdgeChange("added", after=edge)


def _edge_verdict(
    edge: Edge, after: Edge, target: str | None, unstable: Mapping[tuple[str, ...], EdgeVerdict]
) -> EdgeVerdict:
    if unstable and (known := unstable.get(_edge_name(after))):
        return known
    if after.target != target or name_key(edge.action) != name_key(after.action):
        return "changed"
    return "match" if (edge.source, edge.action) == (after.source, after.action) else "moved"


def _with_locations(
    unstable: Mapping[tuple[str, ...], EdgeVerdict], edges: Iterable[Edge]
) -> Iterator[tuple[tuple[str, ...], EdgeVerdict]]:
    """Complete names of unstable edges by their elements' locations; ambiguous ones are left out."""
    by_action: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for edge in edges:
        name = _edge_name(edge)
        by_action.setdefault(name[:2], set()).add(name)
    for name, verdict in unstable.items():
        if len(name) > 2:
            yield name, verdict
        elif len(known := by_action.get(name, ())) == 1:
            yield from ((each, verdict) for each in known)


def _edge_name(edge: Edge) -> tuple[str, ...]:
    return (edge.source, str(edge.action), element_location(edge.action))


def _broken_paths(old: InteractionGraph, edges: Collection[EdgeChange]) -> Iterator[tuple[str, Edge]]:
    """Yield states of the older map to which the first known path is broken, in the order of their discovery."""
    lost = {id(e.before) for e in edges if e.before is not None and e.verdict in {"gone", "changed"}}
    discovered_by: dict[str, Edge] = {}
    for edge in old.edges:
        if not edge.inherited and edge.target not in {edge.source, old.start}:
            discovered_by.setdefault(edge.target, edge)
    for node_id in old.nodes:
        here, visited = node_id, set[str]()
        while here in discovered_by and here not in visited:
            visited.add(here)
            if id(discovered_by[here]) in lost:
                yield node_id, discovered_by[here]
                break
            here = discovered_by[here].source
