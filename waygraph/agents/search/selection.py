"""Selection: which action of the frontier is performed next, and when the search ends.

Three orders: `safe_first` never performs an action that changes data while a safe one is left, nor if an answer has a
higher score; `paper` is WebOperator's Algorithm 5; `value` looks at scores alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search.frontier import is_repeated
from waygraph.agents.search.tree import SearchTree, TreeCandidate


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far a search goes, and by which rules.

    Attributes
    ----------
    max_steps
        Limit of actions.
    max_depth
        Limit of a node's distance from the root, in actions.
    solutions
        Number of answers that are wanted before one is accepted.
    late_share
        Share of `max_steps` from which on the first answer is accepted.
    max_prunes
        Number of losses of the frontier from which on the first answer is accepted.
    order
        The order of selection.
    backtracking
        Whether actions of other states than the present one are tried.
    begin_anew
        Whether a change of data makes the state after it the root.
    max_destructive
        In the order `paper`: number of actions that change data, above which the best action is next, whatever it is.
    """

    max_steps: int = 20
    max_depth: int = 20
    solutions: int = 2
    late_share: float = 0.8
    max_prunes: int = 3
    order: Literal["safe_first", "paper", "value"] = "safe_first"
    backtracking: bool = True
    begin_anew: bool = True
    max_destructive: int = 1


class Why(StrEnum):
    """The rule that selected."""

    STEP_LIMIT = "step limit"
    ALL_AGREE = "all agree"
    PATH_LOST = "no way would lead back to this answer"
    BEST = "best score"
    FULL = "the frontier is full"
    DESTRUCTIVE = "everything safe was tried"
    LAST_ANSWER = "nothing but answers is left"
    REPEATED = "everything else was tried"
    EXHAUSTED = "nothing is left"


@dataclass(frozen=True, slots=True)
class Selection:
    """What is done next.

    Attributes
    ----------
    candidate
        The action; None: the search ends without an answer.
    why
        The rule that selected it.
    end
        How the search ends; None: it does not, and the action is performed.
    """

    candidate: TreeCandidate | None
    why: Why
    end: AttemptEnd | None = None


def select(
    tree: SearchTree, limits: SearchLimits, *, current: int | None, leads_back: Callable[[int], bool]
) -> Selection:
    """Select the next action of the frontier.

    Parameters
    ----------
    tree
        The search.
    limits
        Its limits.
    current
        The node that the page shows; None: it shows none.
    leads_back
        Whether a way leads back to a node, whatever the page shows.

    Returns
    -------
    Selection
        The action, or the end of the search.
    """
    queued = tree.queued
    stops = [each for each in queued if each.is_stop]
    best_stop = _best(stops)
    if tree.steps >= limits.max_steps:
        return _end(best_stop, Why.STEP_LIMIT, AttemptEnd.STEP_LIMIT)
    if tree.agreed is not None:
        return _end(tree.candidates[tree.agreed], Why.ALL_AGREE, AttemptEnd.EXHAUSTED)
    if limits.order == "value":
        return _chosen(_best(queued), Why.BEST)
    has_lost = tree.changes > 0 or tree.prunes > 0
    if has_lost and best_stop is not None and best_stop.node == current and not leads_back(best_stop.node):
        return _end(best_stop, Why.PATH_LOST, AttemptEnd.EXHAUSTED)
    destructive = _best([each for each in queued if each.is_destructive])
    if limits.order == "paper" and (full := _of_full_frontier(tree, limits, best_stop, has_lost=has_lost)) is not None:
        return _chosen(full, Why.FULL)
    repeated = {each.id for each in queued if is_repeated(tree, each)}
    safe = [each for each in queued if not (each.is_stop or each.is_destructive or each.id in repeated)]
    if best_stop is not None and _accepts_stop(tree, limits, best_stop, destructive):
        safe.append(best_stop)
    best = _best(safe)
    if best is not None:
        return _chosen(best, Why.BEST)
    if destructive is not None and (
        best_stop is None or (not has_lost and (limits.order == "paper" or destructive.score > best_stop.score))
    ):
        return Selection(destructive, Why.DESTRUCTIVE)
    if best_stop is not None:
        return _end(best_stop, Why.LAST_ANSWER, AttemptEnd.EXHAUSTED)
    again = _best([each for each in queued if each.id in repeated])
    return Selection(again, Why.REPEATED) if again is not None else _end(None, Why.EXHAUSTED, AttemptEnd.EXHAUSTED)


def _accepts_stop(
    tree: SearchTree, limits: SearchLimits, stop: TreeCandidate, destructive: TreeCandidate | None
) -> bool:
    """Whether an answer may end the search although other safe actions are left."""
    if tree.steps >= limits.late_share * limits.max_steps or tree.prunes >= limits.max_prunes:
        return True
    if not _has_enough(tree, limits):
        return False
    if destructive is None or tree.changes > 0 or tree.prunes > 0:
        return True
    return limits.order != "paper" and destructive.score <= stop.score


def _of_full_frontier(
    tree: SearchTree, limits: SearchLimits, stop: TreeCandidate | None, *, has_lost: bool
) -> TreeCandidate | None:
    """Return the best action of a frontier with more than its budget, or with several that change data.

    Answers take part when one may end the search. After a loss an answer comes before what changes data. None: the
    frontier is not full, or holds nothing but answers that wait.
    """
    queued = tree.queued
    if len(queued) <= tree.budget and sum(each.is_destructive for each in queued) <= limits.max_destructive:
        return None
    accepts = stop is not None and _has_enough(tree, limits)
    best = _best([each for each in queued if accepts or not each.is_stop])
    return stop if best is not None and best.is_destructive and has_lost and stop is not None else best


def _has_enough(tree: SearchTree, limits: SearchLimits) -> bool:
    """Whether the search is late, has lost much, or has as many answers as are wanted."""
    if tree.steps >= limits.late_share * limits.max_steps or tree.prunes >= limits.max_prunes:
        return True
    return len({each.node for each in tree.candidates if each.is_stop and tree.is_live(each.node)}) >= limits.solutions


def _best(candidates: list[TreeCandidate]) -> TreeCandidate | None:
    """Return the candidate with the highest score; of equal ones the first."""
    return max(candidates, key=lambda each: (each.score, -each.id), default=None)


def _chosen(candidate: TreeCandidate | None, why: Why) -> Selection:
    """Return the selection of a candidate, which ends the search if it is an answer, or if there is none."""
    if candidate is None:
        return _end(None, Why.EXHAUSTED, AttemptEnd.EXHAUSTED)
    return _end(candidate, why, AttemptEnd.EXHAUSTED) if candidate.is_stop else Selection(candidate, why)


def _end(stop: TreeCandidate | None, why: Why, without: AttemptEnd) -> Selection:
    """Return the end of the search with an answer, or as `without` says if there is none."""
    return Selection(stop, why, AttemptEnd.ANSWERED if stop is not None else without)
