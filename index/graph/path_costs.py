"""Costs of path steps: measured durations, defaults where none was measured, and penalties for unverified edges."""

from __future__ import annotations

import math
from collections.abc import Iterable

from waygraph.index.graph.model import Action, Edge
from waygraph.index.graph.url_tokens import url_parts

#: Cost of an edge whose duration was not measured, in milliseconds.
DEFAULT_EDGE_MS = 500.0
#: Cost of loading an addressable state whose load was not measured, in milliseconds.
DEFAULT_LOAD_MS = 1_500.0
#: Added to an inherited edge, in milliseconds: it was never walked, so a detour of many verified steps is better. Added
#: again for each of its openers.
INHERITED_PENALTY_MS = 60_000.0
#: Added instead to a doubtful inherited edge (`is_doubtful`), in milliseconds: a detour over steps that revert what the
#: source shows, or over the page where the edge was walked, is better.
DOUBTFUL_PENALTY_MS = 3 * INHERITED_PENALTY_MS


def edge_cost_ms(edge: Edge, *, doubtful: bool = False) -> float:
    """Return the cost of walking `edge`, in milliseconds rounded to whole microseconds.

    Parameters
    ----------
    edge
        The edge.
    doubtful
        Whether `DOUBTFUL_PENALTY_MS` is added if the edge is inherited, see `is_doubtful`.

    Returns
    -------
    float
        The cost.
    """
    return edge_cost_us(edge, doubtful=doubtful) / 1000


def goto_cost_ms(load_ms: float) -> float:
    """Return the cost of a `goto` to a state with this measured load, in milliseconds (whole microseconds)."""
    return goto_cost_us(load_ms) / 1000


def duration_ms(cost_ms: float, *, inherited: bool) -> float:
    """Return what a step took while mapping: its cost without the penalties, which are whole multiples of one.

    >>> duration_ms(120_500.0, inherited=True), duration_ms(61_000.0, inherited=False)
    (500.0, 61000.0)
    """
    return cost_ms % INHERITED_PENALTY_MS if inherited else cost_ms


def edge_cost_us(edge: Edge, *, doubtful: bool) -> int:
    """Return `edge_cost_ms` in whole microseconds; at least 1."""
    return _rounded_us(_measured_or(edge.cost_ms, DEFAULT_EDGE_MS) + _penalty_ms(edge, doubtful=doubtful))


def goto_cost_us(load_ms: float) -> int:
    """Return `goto_cost_ms` in whole microseconds; at least 1."""
    return _rounded_us(_measured_or(load_ms, DEFAULT_LOAD_MS))


def is_doubtful(edge: Edge, *, same_page: bool, target_url: str, edges_back: Iterable[Edge]) -> bool:
    """Return whether an inherited edge probably does not lead to its target.

    An inherited edge is a copy of the parent state's edge. If it stays on the page, it leads to its target only if
    everything that the source shows besides goes away by itself: a dialog would have to close. An edge that repeats the
    action by which the target led to the source is not doubtful: pressing the button again may close what it opened.

    An edge by a search form that sends more than the words is doubtful: what it sends besides may name the page that it
    stands on, and so may the links of the results.

    Parameters
    ----------
    edge
        The edge.
    same_page
        Whether its source and its target have the same URL.
    target_url
        URL of its target.
    edges_back
        Usable edges from its target to its source.

    Returns
    -------
    bool
        Whether `DOUBTFUL_PENALTY_MS` applies.
    """
    if not edge.inherited:
        return False
    if edge.action.kind == "submit" and _sends_more_than_words(edge.action, target_url):
        return True
    if not same_page:
        return False
    operation = _operation(edge.action)
    return all(_operation(back.action) != operation for back in edges_back if not back.inherited)


def _sends_more_than_words(submit: Action, results_url: str) -> bool:
    return any(value and value != submit.value for _, value in url_parts(results_url).query)


def _operation(action: Action) -> tuple[str, str, tuple[str, ...], str]:
    """Return what is done to which element; other fields of an action may differ after a change of the page."""
    return action.kind, action.value, action.frame, action.xpath


def _penalty_ms(edge: Edge, *, doubtful: bool) -> float:
    if not edge.inherited:
        return 0.0
    return DOUBTFUL_PENALTY_MS if doubtful else INHERITED_PENALTY_MS * (1 + len(edge.openers))


def _measured_or(measured_ms: float, default_ms: float) -> float:
    return measured_ms if 0 < measured_ms < math.inf else default_ms


def _rounded_us(cost_ms: float) -> int:
    return max(1, round(cost_ms * 1000))
