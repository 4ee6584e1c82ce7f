"""Routes of the explorer back to known states, over the graph found so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from waygraph.index.graph import Action, Edge, PathStep
from waygraph.pipeline.explore.records.state import State


class Routes:
    """Routes to every known state: a `goto` to the nearest addressable state, then the fewest recorded actions.

    Distances are numbers of actions, not measured times, so that the route to a state is the same in every run.

    Parameters
    ----------
    states
        All states by id.
    addressable
        Ids of the addressable states.
    edges
        Performed edges, in canonical order.
    """

    def __init__(self, states: Mapping[str, State], addressable: Iterable[str], edges: Iterable[Edge]) -> None:
        self._states = states
        self._last: dict[str, Edge | None] = dict.fromkeys(addressable)
        out: dict[str, list[Edge]] = {}
        for edge in edges:
            if edge.source != edge.target and not edge.opens_tab:
                out.setdefault(edge.source, []).append(edge)
        queue = deque(self._last)
        while queue:
            for edge in out.get(queue.popleft(), ()):
                if edge.target not in self._last:
                    self._last[edge.target] = edge
                    queue.append(edge.target)

    def to(self, node_id: str) -> tuple[PathStep, ...] | None:
        """Return the steps that lead to a state from any page, or None if no route is known."""
        if node_id not in self._last:
            return None
        steps: list[PathStep] = []
        here = node_id
        while (edge := self._last[here]) is not None:
            steps.append(PathStep(edge.action, here, self._states[here].url, edge.cost_ms))
            here = edge.source
        first = self._states[here]
        steps.append(PathStep(Action("goto", url=first.load_url), here, first.url, 0.0))
        return tuple(reversed(steps))
