"""Dijkstra's algorithm over numbered states: from several sources at once, and bidirectionally between two states.

Costs are packed into single integers, so that equal sums are equal whatever the order of addition, and so that heap
entries are compared as integers, which is faster than comparing tuples. From the highest bit to the lowest, a packed
cost holds

- whole microseconds,
- `_STEP_BITS` bits for the number of steps: among paths of equal duration the one with fewer steps is cheaper,
- `_STATE_BITS` bits that are zero. A heap entry holds the number of its state there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

_STEP_BITS, _STATE_BITS = 16, 24
_STATE_MASK = (1 << _STATE_BITS) - 1
#: Cost of a state that cannot be reached: more than the sum of any two packed costs.
UNREACHABLE = 1 << 120

#: Neighbours of one state, as pairs of state number and packed cost.
Row = tuple[tuple[int, int], ...]


def packed_step(cost_us: int) -> int:
    """Return the packed cost of one step that takes `cost_us` microseconds."""
    return ((cost_us << _STEP_BITS) + 1) << _STATE_BITS


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Neighbours of every state, with the packed cost of the step between them.

    Attributes
    ----------
    ahead
        For every state the states that one step from it leads to.
    behind
        For every state the states from which one step leads to it.
    """

    ahead: list[Row]
    behind: list[Row]

    @classmethod
    def from_costs(cls, states: int, costs: Mapping[tuple[int, int], int]) -> Adjacency:
        """Build the rows of `states` states from packed costs by (source, target)."""
        ahead: list[list[tuple[int, int]]] = [[] for _ in range(states)]
        behind: list[list[tuple[int, int]]] = [[] for _ in range(states)]
        for (source, target), cost in sorted(costs.items()):
            ahead[source].append((target, cost))
            behind[target].append((source, cost))
        return cls([tuple(row) for row in ahead], [tuple(row) for row in behind])

    def replace(self, costs: Mapping[tuple[int, int], int | None]) -> Adjacency:
        """Return a copy in which some known pairs have another cost, or (None) no edge. Other rows are shared."""
        ahead, behind = list(self.ahead), list(self.behind)
        for (source, target), cost in costs.items():
            ahead[source] = _replace_cost(ahead[source], target, cost)
            behind[target] = _replace_cost(behind[target], source, cost)
        return Adjacency(ahead, behind)


def _replace_cost(row: Row, number: int, cost: int | None) -> Row:
    if cost is None:
        return tuple(pair for pair in row if pair[0] != number)
    return tuple((n, cost if n == number else known) for n, known in row)


@dataclass(frozen=True, slots=True)
class CheapestTree:
    """For every state the cheapest path to it from one of several starts.

    Attributes
    ----------
    costs
        Packed cost by state; `UNREACHABLE` if there is no path.
    previous
        The state before it; a start has itself, an unreachable state -1.
    """

    costs: list[int]
    previous: list[int]

    def walk_to(self, goal: int) -> list[int]:
        """Return the states on the path to a reachable state, both ends included."""
        walk = [goal]
        while (previous := self.previous[walk[-1]]) != walk[-1]:
            walk.append(previous)
        walk.reverse()
        return walk


def cheapest_tree(ahead: Sequence[Row], start_costs: Sequence[int]) -> CheapestTree:
    """Run Dijkstra's algorithm from all starts at once.

    Parameters
    ----------
    ahead
        Rows of `Adjacency.ahead`.
    start_costs
        For every state the packed cost of starting there; `UNREACHABLE` if it is no start.

    Returns
    -------
    CheapestTree
        The cheapest paths to all states.
    """
    costs = list(start_costs)
    previous = [state if cost < UNREACHABLE else -1 for state, cost in enumerate(costs)]
    queue = [cost | state for state, cost in enumerate(costs) if cost < UNREACHABLE]
    heapify(queue)
    while queue:
        entry = heappop(queue)
        here = entry & _STATE_MASK
        cost = entry ^ here
        if cost > costs[here]:
            continue
        for there, step in ahead[here]:
            new = cost + step
            if new < costs[there]:
                costs[there] = new
                previous[there] = here
                heappush(queue, new | there)
    return CheapestTree(costs, previous)


def cheapest_walk(start: int, goal: int, adjacency: Adjacency, limits: Sequence[int]) -> list[int] | None:
    """Find the cheapest walk between two states by bidirectional Dijkstra (Pohl, Machine Intelligence 6, 1971).

    One search goes forward from the start, one backward from the goal. Whenever a search improves a state that the
    other one has reached, the two halves form a walk, and the cheapest such walk is kept. The search ends when the
    smallest unsettled costs of both sides add up to at least the cost of that walk: no other walk can be cheaper.

    The side that has scanned fewer edges so far goes next. So a goal with thousands of edges into it (a start page)
    costs no more than a search from the start alone.

    Parameters
    ----------
    start
        The first state.
    goal
        The last state.
    adjacency
        The edges.
    limits
        For every state the packed cost of another path to it that can be continued like the walk, or `UNREACHABLE`. The
        forward search gives up every state that it does not reach below its limit.

    Returns
    -------
    list of int or None
        The states on the walk, both ends included; None if no walk is cheaper than `limits[goal]`.
    """
    states = len(limits)
    forward, backward = [UNREACHABLE] * states, [UNREACHABLE] * states
    forward[start] = backward[goal] = 0
    came_from: dict[int, int] = {}
    goes_to: dict[int, int] = {}
    front, back = [start], [goal]
    # What one step of either side reads and writes. A step is no function: a call per state would double the time.
    # The backward search has no limits; its own costs stand in for them: making a list of 10,000 would take a tenth of
    # the time of a short query.
    sides = (
        (front, adjacency.ahead, forward, backward, came_from, limits),
        (back, adjacency.behind, backward, forward, goes_to, backward),
    )
    scanned = [len(adjacency.ahead[start]), len(adjacency.behind[goal])]
    best, meeting = limits[goal], -1
    while front and back and (front[0] & ~_STATE_MASK) + (back[0] & ~_STATE_MASK) < best:
        side = 0 if scanned[0] <= scanned[1] else 1
        queue, rows, costs, costs_of_other, previous, ceilings = sides[side]
        entry = heappop(queue)
        here = entry & _STATE_MASK
        cost = entry ^ here
        if cost == costs[here]:
            for there, step in rows[here]:
                new = cost + step
                if new < costs[there] and new < ceilings[there] and new < best:
                    costs[there] = new
                    previous[there] = here
                    heappush(queue, new | there)
                    if new + costs_of_other[there] < best:
                        best, meeting = new + costs_of_other[there], there
        if queue:
            scanned[side] += len(rows[queue[0] & _STATE_MASK])
    return None if meeting < 0 else _joined(start, meeting, goal, came_from, goes_to)


def _joined(start: int, meeting: int, goal: int, came_from: dict[int, int], goes_to: dict[int, int]) -> list[int]:
    walk = [meeting]
    while walk[-1] != start:
        walk.append(came_from[walk[-1]])
    walk.reverse()
    while walk[-1] != goal:
        walk.append(goes_to[walk[-1]])
    return walk
