"""How does one get from one state to another at the lowest cost? Bidirectional Dijkstra; standard library only."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from index.graph.model import Action, Edge, Path, PathStep
from index.graph.multigraph import InteractionGraph
from waygraph.errors import NoPath, NotFound

#: Cost of an edge whose duration was not measured.
DEFAULT_EDGE_MS = 500.0
#: Cost of loading an addressable state whose load was not measured.
DEFAULT_LOAD_MS = 1_500.0
#: Added to an inherited edge: it was never walked, so it is worth a detour of many verified steps to avoid it.
INHERITED_PENALTY_MS = 60_000.0
#: Added instead when it stays on the page, and does not do once more what made its source. It leads where it says only
#: if all that its source shows beside goes away by itself: worth a detour over what takes that back.
DOUBTFUL_PENALTY_MS = 3 * INHERITED_PENALTY_MS

# Costs are integers while searching, so that equal sums are equal whatever the order of addition: whole microseconds
# above `_STEP_BITS` that count steps (the cheapest path is thereby the shortest of the cheapest), above `_STATE_BITS`
# that are zero in a cost and hold the state's number in a heap entry: comparing one integer is faster than a tuple.
_STEP_BITS, _STATE_BITS = 16, 24
_STATE_MASK = (1 << _STATE_BITS) - 1
_NEVER = 1 << 120
_Row = tuple[tuple[int, int], ...]


def edge_cost_ms(edge: Edge, *, doubtful: bool = False) -> float:
    """What walking `edge` costs a path, in milliseconds (whole microseconds).

    `doubtful` says that `DOUBTFUL_PENALTY_MS` is added to an inherited one.
    """
    return _micros(edge.cost_ms, DEFAULT_EDGE_MS, _penalty_ms(edge, doubtful=doubtful)) / 1000


def goto_cost_ms(load_ms: float) -> float:
    """What `goto` to a state with that measured load costs a path, in milliseconds (whole microseconds)."""
    return _micros(load_ms, DEFAULT_LOAD_MS) / 1000


def _penalty_ms(edge: Edge, *, doubtful: bool) -> float:
    if not edge.inherited:
        return 0.0
    return DOUBTFUL_PENALTY_MS if doubtful else INHERITED_PENALTY_MS


def _micros(measured_ms: float, default_ms: float, extra_ms: float = 0.0) -> int:
    known = measured_ms if 0 < measured_ms < math.inf else default_ms
    return max(1, round((known + extra_ms) * 1000))


@dataclass(frozen=True, slots=True)
class _Links:
    """For every state (by number) the states one step ahead of and behind it, each with the weight of that step."""

    ahead: list[_Row]
    behind: list[_Row]


@dataclass(frozen=True, slots=True)
class _Gotos:
    """For every state the cheapest way that begins with a goto: its cost, and the state before (itself: the goto)."""

    costs: list[int]
    before: list[int]


class Router:
    """Cheapest paths over one graph. Prepared once; then immutable, so that threads may share it.

    The cost of a path is the sum of `edge_cost_ms` of its edges (`DOUBTFUL_PENALTY_MS` says which are doubtful) and
    `goto_cost_ms` of its gotos, in whole microseconds. At equal cost the path with fewer steps wins, then a fixed order
    by node id and action: the answer depends on the content of the graph alone. Edges that would change something, and
    edges that stay in their state, are never used.

    A `goto` costs the same from everywhere, so a cheapest path holds at most one, as its first step, and the cheapest
    way "from anywhere" to every state is found once per graph. A search then only has to find out whether walking from
    the source is cheaper, and gives up on every state that a goto reaches as cheaply.
    """

    def __init__(self, graph: InteractionGraph) -> None:
        self._nodes = [graph.nodes[node_id] for node_id in sorted(graph.nodes)]
        self._number = {node.id: number for number, node in enumerate(self._nodes)}
        #: Usable edges by (source, target) number, cheapest first.
        self._edges: dict[tuple[int, int], list[Edge]] = {}
        for edge in graph.edges:
            if not edge.changes_something and edge.source != edge.target:
                pair = (self._number[edge.source], self._number[edge.target])
                self._edges.setdefault(pair, []).append(edge)
        for edges in self._edges.values():
            if len(edges) > 1:
                edges.sort(key=lambda edge: (self._cost_ms(edge), edge.action))
        self._links = self._linked()
        self._no_gotos = _Gotos([_NEVER] * len(self._nodes), [])
        self._gotos = self._spread(self._links)
        self._goto_edges = tuple(edge for edges in self._edges.values() for edge in edges if edge.action.kind == "goto")

    def route(
        self,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Collection[Edge] = (),
        avoid_gotos: Collection[str] = (),
    ) -> Path:
        """The cheapest path to `target`.

        `source` None means from anywhere, so the path begins with a `goto`; `source` equal to `target` gives a path
        without steps. `allow_goto` says whether the path may load a URL instead of acting on the page. Edges to `avoid`
        (for example because they just failed) are matched by source, target and action; `avoid_gotos` are states that
        must not be loaded by their URL.

        Raises
        ------
        NotFound
            When `source` or `target` is not in the graph.
        NoPath
            When the graph holds no way under these conditions.

        """
        start, goal = None if source is None else self._find(source), self._find(target)
        if start == goal:
            return Path(source, target, (), 0.0)
        shunned = {(edge.source, edge.target, edge.action) for edge in avoid}
        if not allow_goto:
            shunned.update((edge.source, edge.target, edge.action) for edge in self._goto_edges)
        edges = self._without(shunned) if shunned else {}
        links = self._relinked(edges) if edges else self._links
        gotos = self._gotos_over(links, edges, avoid_gotos) if allow_goto else self._no_gotos
        numbers = None if start is None else _walk(start, goal, links, gotos.costs)
        steps: list[PathStep] = []
        if numbers is None:
            if gotos.costs[goal] == _NEVER:
                raise _no_path(source, target, allow_goto=allow_goto, avoided=len(avoid) + len(avoid_gotos))
            numbers = _back_to_goto(goal, gotos)
            steps.append(self._goto(numbers[0]))
        steps.extend(self._step((edges.get(pair) or self._edges[pair])[0]) for pair in pairwise(numbers))
        return Path(source, target, tuple(steps), round(sum(step.cost_ms for step in steps), 3))

    def _find(self, node_id: str) -> int:
        number = self._number.get(node_id)
        if number is None:
            raise NotFound(f"The map holds no state '{node_id}'.", hint="Search or export lists the states of a map.")
        return number

    def _step(self, edge: Edge) -> PathStep:
        url = self._nodes[self._number[edge.target]].url
        return PathStep(edge.action, edge.target, url, self._cost_ms(edge), edge.inherited, edge.opens_tab)

    def _cost_ms(self, edge: Edge) -> float:
        return edge_cost_ms(edge, doubtful=self._is_doubtful(edge))

    def _edge_weight(self, edge: Edge) -> int:
        return _weight(edge.cost_ms, DEFAULT_EDGE_MS, _penalty_ms(edge, doubtful=self._is_doubtful(edge)))

    def _is_doubtful(self, edge: Edge) -> bool:
        """Whether an inherited edge stays on the page and does not do once more what made its source."""
        if not edge.inherited:
            return False
        source, target = self._number[edge.source], self._number[edge.target]
        if self._nodes[source].url != self._nodes[target].url:
            return False
        made_source = (made for made in self._edges.get((target, source), ()) if not made.inherited)
        return all(_deed(made.action) != _deed(edge.action) for made in made_source)

    def _goto(self, number: int) -> PathStep:
        node = self._nodes[number]
        return PathStep(Action(kind="goto", url=node.url), node.id, node.url, goto_cost_ms(node.load_ms))

    def _linked(self) -> _Links:
        ahead: list[list[tuple[int, int]]] = [[] for _ in self._nodes]
        behind: list[list[tuple[int, int]]] = [[] for _ in self._nodes]
        for (source, target), edges in sorted(self._edges.items(), key=lambda item: item[0]):
            weight = self._edge_weight(edges[0])
            ahead[source].append((target, weight))
            behind[target].append((source, weight))
        return _Links([tuple(row) for row in ahead], [tuple(row) for row in behind])

    def _without(self, shunned: set[tuple[str, str, Action]]) -> dict[tuple[int, int], list[Edge]]:
        """The edges left between each pair of states that loses one."""
        left: dict[tuple[int, int], list[Edge]] = {}
        for source, target, _ in shunned:
            pair = (self._number.get(source, -1), self._number.get(target, -1))
            if pair in self._edges:
                left[pair] = [e for e in self._edges[pair] if (e.source, e.target, e.action) not in shunned]
        return left

    def _relinked(self, changed: dict[tuple[int, int], list[Edge]]) -> _Links:
        """The links of this graph with the edges of some pairs replaced; only the touched rows are copied."""
        ahead, behind = list(self._links.ahead), list(self._links.behind)
        for (source, target), edges in changed.items():
            weight = self._edge_weight(edges[0]) if edges else 0
            ahead[source] = _replaced(ahead[source], target, weight)
            behind[target] = _replaced(behind[target], source, weight)
        return _Links(ahead, behind)

    def _gotos_over(
        self, links: _Links, changed: dict[tuple[int, int], list[Edge]], without: Collection[str]
    ) -> _Gotos:
        """The gotos of this graph, found anew when one of their ways uses a changed pair of states or starts anew."""
        before = self._gotos.before
        shut = {number for node_id in without if (number := self._number.get(node_id)) is not None}
        if any(before[number] == number for number in shut) or any(before[t] == s for s, t in changed):
            return self._spread(links, shut)
        return self._gotos

    def _spread(self, links: _Links, shut: Collection[int] = ()) -> _Gotos:
        """Dijkstra from all addressable states at once but those `shut`, each starting at the cost of loading it."""
        ahead = links.ahead
        costs = [
            _weight(node.load_ms, DEFAULT_LOAD_MS) if node.addressable and number not in shut else _NEVER
            for number, node in enumerate(self._nodes)
        ]
        before = [number if cost < _NEVER else -1 for number, cost in enumerate(costs)]
        queue = [cost | number for number, cost in enumerate(costs) if cost < _NEVER]
        heapify(queue)
        while queue:
            entry = heappop(queue)
            here = entry & _STATE_MASK
            cost = entry ^ here
            if cost > costs[here]:
                continue
            for there, weight in ahead[here]:
                new = cost + weight
                if new < costs[there]:
                    costs[there] = new
                    before[there] = here
                    heappush(queue, new | there)
        return _Gotos(costs, before)


def _walk(start: int, goal: int, links: _Links, limits: list[int]) -> list[int] | None:  # noqa: C901, PLR0912 - see below
    """The states on the cheapest walk, both ends included; None when there is none cheaper than `limits[goal]`.

    `limits` must be the cost of other ways to each state that can be continued like a walk: a walk that reaches a state
    no cheaper than its limit is given up. Bidirectional Dijkstra; the side with less work behind it goes next, so that
    a state with thousands of edges into it (a start page) does not cost more than searching from the other side.
    Its two halves stay in one function: a call per state would double the time.
    """
    ahead, behind = links.ahead, links.behind
    forward, backward = [_NEVER] * len(ahead), [_NEVER] * len(ahead)
    forward[start] = backward[goal] = 0
    came_from: dict[int, int] = {}
    goes_to: dict[int, int] = {}
    front, back = [start], [goal]
    work_ahead, work_behind = len(ahead[start]), len(behind[goal])
    best, meeting = limits[goal], -1
    while front and back and (front[0] & ~_STATE_MASK) + (back[0] & ~_STATE_MASK) < best:
        if work_ahead <= work_behind:
            entry = heappop(front)
            here = entry & _STATE_MASK
            cost = entry ^ here
            if cost == forward[here]:
                for there, weight in ahead[here]:
                    new = cost + weight
                    if new < forward[there] and new < limits[there]:
                        forward[there] = new
                        came_from[there] = here
                        heappush(front, new | there)
                        if new + backward[there] < best:
                            best, meeting = new + backward[there], there
            if front:
                work_ahead += len(ahead[front[0] & _STATE_MASK])
        else:
            entry = heappop(back)
            here = entry & _STATE_MASK
            cost = entry ^ here
            if cost == backward[here]:
                for there, weight in behind[here]:
                    new = cost + weight
                    if new < backward[there] and new < best:
                        backward[there] = new
                        goes_to[there] = here
                        heappush(back, new | there)
                        if new + forward[there] < best:
                            best, meeting = new + forward[there], there
            if back:
                work_behind += len(behind[back[0] & _STATE_MASK])
    if meeting < 0:
        return None
    numbers = [meeting]
    while numbers[-1] != start:
        numbers.append(came_from[numbers[-1]])
    numbers.reverse()
    while numbers[-1] != goal:
        numbers.append(goes_to[numbers[-1]])
    return numbers


def _back_to_goto(goal: int, gotos: _Gotos) -> list[int]:
    numbers = [goal]
    while (previous := gotos.before[numbers[-1]]) != numbers[-1]:
        numbers.append(previous)
    numbers.reverse()
    return numbers


def _weight(measured_ms: float, default_ms: float, extra_ms: float = 0.0) -> int:
    return ((_micros(measured_ms, default_ms, extra_ms) << _STEP_BITS) + 1) << _STATE_BITS


def _deed(action: Action) -> tuple[str, str, tuple[str, ...], str]:
    """What is done to which element; a change elsewhere on the page may change what else is known of it."""
    return action.kind, action.value, action.frame, action.xpath


def _replaced(row: _Row, number: int, weight: int) -> _Row:
    return tuple((n, weight if n == number else w) for n, w in row if n != number or weight)


def _no_path(source: str | None, target: str, *, allow_goto: bool, avoided: int) -> NoPath:
    if source is None and not allow_goto:
        return NoPath(
            f"No path to '{target}' from an unknown state without goto.",
            hint="Say which state to start from, or allow goto.",
        )
    conditions = ("" if allow_goto else " without goto") + (f" avoiding {avoided} steps" if avoided else "")
    return NoPath(
        f"The map holds no path from '{source or 'anywhere'}' to '{target}'{conditions}.",
        hint="Inspect the map with export." if allow_goto else "Allow goto, or start from another state.",
    )
