"""Interaction graph of one site: a directed multigraph of states joined by actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from waygraph.index.graph.model import Action, Edge, Node


class InteractionGraph:
    """A directed multigraph of nodes by id and edges between them. The first node added is the start state.

    Nodes and edges are immutable, and neither can be removed. A node whose id is known is not replaced. An equal edge
    (same source, target, action) is kept once.
    """

    def __init__(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        self._nodes: dict[str, Node] = {}
        self._out: dict[str, list[Edge]] = {}
        self._edge_keys: set[tuple[str, str, Action]] = set()
        self.start: str | None = None
        for node in nodes:
            self.add_node(node)
        for edge in edges:
            self.add_edge(edge)

    def add_node(self, node: Node) -> None:
        """Add `node` unless its id is known."""
        if node.id in self._nodes:
            return
        self._nodes[node.id] = node
        self._out[node.id] = []
        if self.start is None:
            self.start = node.id

    def add_edge(self, edge: Edge) -> None:
        """Add `edge` unless the same action between the same states is known; both ends must be nodes (KeyError)."""
        outgoing = self._out[edge.source]
        if edge.target not in self._nodes:
            raise KeyError(edge.target)
        key = (edge.source, edge.target, edge.action)
        if key in self._edge_keys:
            return
        self._edge_keys.add(key)
        outgoing.append(edge)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes by id, in the order they were added."""
        return MappingProxyType(self._nodes)

    @property
    def edges(self) -> Iterator[Edge]:
        """All edges, grouped by source in the order the sources were added."""
        for edges in self._out.values():
            yield from edges

    def edges_from(self, node_id: str) -> tuple[Edge, ...]:
        """Return the edges that leave a state (KeyError if it is unknown)."""
        return tuple(self._out[node_id])

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._nodes
