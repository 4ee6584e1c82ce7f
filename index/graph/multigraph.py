"""The interaction graph of one site: a directed multigraph of page states joined by actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from index.graph.model import Edge, Node


class InteractionGraph:
    """Nodes by id and every edge between them. The first node added is the start state.

    Nodes and edges are immutable; the graph only grows. Adding a node twice replaces nothing and must agree; an equal
    edge (same source, target, action) is kept once.
    """

    def __init__(self, nodes: Iterable[Node] = (), edges: Iterable[Edge] = ()) -> None:
        self._nodes: dict[str, Node] = {}
        self._out: dict[str, list[Edge]] = {}
        self._in: dict[str, list[Edge]] = {}
        self._seen: set[tuple[str, str, object]] = set()
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
        self._in[node.id] = []
        if self.start is None:
            self.start = node.id

    def add_edge(self, edge: Edge) -> None:
        """Add `edge` unless the same action between the same states is known. Both ends must be nodes (KeyError)."""
        out, into = self._out[edge.source], self._in[edge.target]
        key = (edge.source, edge.target, edge.action)
        if key in self._seen:
            return
        self._seen.add(key)
        out.append(edge)
        into.append(edge)

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
        """Edges that leave a state (KeyError when it is unknown)."""
        return tuple(self._out[node_id])

    def edges_into(self, node_id: str) -> tuple[Edge, ...]:
        """Edges that enter a state (KeyError when it is unknown)."""
        return tuple(self._in[node_id])

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._nodes
