"""Conversion of the tree of a search for replays: bounded in size, and with the windows of the trace."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from waygraph.agents.search.tree import CandidateStatus, SearchTree, TreeCandidate, TreeNode
from waygraph.core.replay_file import (
    ReplayTree,
    ReplayTreeAction,
    ReplayTreeKnown,
    ReplayTreeNode,
    ReplayTreeReturn,
    ReplayTreeStep,
)
from waygraph.core.text import shortened

if TYPE_CHECKING:
    from waygraph.agents.runner.trace_reading import TaskTrace

#: Most states of a tree, actions of a state, and states that only the map knows; and characters of a text.
MAX_NODES, MAX_ACTIONS, MAX_KNOWN, MAX_CHARS = 400, 60, 40, 240
#: Actions that say more than others of the same state: they were performed, or ended the search.
_TELLING = frozenset(
    {
        CandidateStatus.DONE,
        CandidateStatus.CHOSEN,
        CandidateStatus.FAILED,
        CandidateStatus.BEGUN,
        CandidateStatus.INTERRUPTED,
    }
)


def read_tree(path: Path) -> SearchTree | None:
    """Return the search of a file; None if there is no file, or this version cannot read it."""
    try:
        return SearchTree.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def windows_of(tree: SearchTree, trace: TaskTrace) -> dict[int, Path]:
    """Return the screenshots of visited states, by the number of the node.

    Parameters
    ----------
    tree
        The search.
    trace
        The trace of the task. After a search was resumed, it has the steps of the latest process alone.

    Returns
    -------
    dict of int to Path
        The files.
    """
    found: dict[int, Path] = {}
    for step in trace.steps:
        for key, name in (("node", step.screenshot), ("result", step.screenshot_after)):
            number = _node_number(tree, step.details.get(key))
            if number is not None and (path := trace.screenshot(name)) is not None:
                found.setdefault(number, path)
    return found


def replay_tree(tree: SearchTree, windows: Mapping[int, str]) -> ReplayTree:
    """Return the tree of a search as replays have it.

    Parameters
    ----------
    tree
        The search.
    windows
        Keys of the screenshots of visited states, by the number of the node.

    Returns
    -------
    ReplayTree
        The first 400 states with the 60 most telling actions each, and every step.
    """
    proposed: dict[int, list[TreeCandidate]] = defaultdict(list)
    for candidate in tree.candidates:
        proposed[candidate.node].append(candidate)
    visited = {each.map_state for each in tree.nodes}
    known = sorted((each for each in tree.known.values() if each.node_id not in visited), key=lambda each: -each.value)
    return ReplayTree(
        nodes=[_node(tree, node, proposed[node.id], windows.get(node.id, "")) for node in tree.nodes[:MAX_NODES]],
        nodes_left_out=max(0, len(tree.nodes) - MAX_NODES),
        steps=_steps(tree),
        known=[
            ReplayTreeKnown(
                value=_number(each.value) or 0.0,
                title=_short(each.title),
                url=_short(each.url),
                seen_from=each.seen_from,
            )
            for each in known[:MAX_KNOWN]
        ],
        known_total=len(known),
        counts=_counts(tree),
    )


def _counts(tree: SearchTree) -> dict[str, int]:
    statuses = Counter(each.status for each in tree.candidates)
    return {
        "states visited": len(tree.nodes),
        "states judged by the map": len(tree.known),
        "actions proposed": len(tree.candidates),
        "proposals merged": sum(len(each.merged) for each in tree.candidates),
        "actions dropped": statuses[CandidateStatus.DROPPED],
        "returns": len(tree.backtracks),
        "returns that failed": sum(not each.arrived for each in tree.backtracks),
        "changes of data": tree.changes,
    }


def _node(tree: SearchTree, node: TreeNode, proposed: Sequence[TreeCandidate], window: str) -> ReplayTreeNode:
    shown = sorted(proposed, key=lambda each: (each.status not in _TELLING, -each.score, each.id))[:MAX_ACTIONS]
    came = node.candidate is not None
    return ReplayTreeNode(
        number=node.id,
        # Of a file of others, a parent may be any number; one that comes later would make a circle.
        parent=node.parent if node.parent is not None and 0 <= node.parent < node.id else None,
        step=node.step + 1 if came else 0,
        title=_short(node.state.title),
        url=_short(node.state.address),
        screenshot=window,
        value=_number(node.value) if node.is_expanded else None,
        map_state=node.map_state,
        same_as=node.same_as,
        problem=_short(node.problem),
        notes=_notes(tree, node),
        is_answer=tree.chosen is not None and tree.chosen.node == node.id,
        actions=[_action(each) for each in sorted(shown, key=lambda each: (-each.score, each.id))],
        actions_left_out=len(proposed) - len(shown),
    )


def _notes(tree: SearchTree, node: TreeNode) -> list[str]:
    notes = []
    if node.id == tree.root and tree.changes:
        notes.append("root since data was changed")
    if node.loads == "no":
        notes.append("its URL shows something else")
    return notes


def _action(candidate: TreeCandidate) -> ReplayTreeAction:
    return ReplayTreeAction(
        text=_short(candidate.text),
        score=_number(candidate.score) or 0.0,
        status=candidate.status.value,
        reason=_short(candidate.reason),
        result=candidate.result,
        proposed_by=[_short(each) for each in candidate.contexts],
        merged=[_short(each) for each in candidate.merged],
        changes_data=candidate.is_destructive,
        is_known=bool(candidate.outcome),
    )


def _steps(tree: SearchTree) -> list[ReplayTreeStep]:
    returns: dict[int, list[ReplayTreeReturn]] = defaultdict(list)
    for each in tree.backtracks:
        returns[each.step].append(
            ReplayTreeReturn(
                target=each.target,
                tried=[_short(way) for way in each.tried],
                arrived=each.arrived,
                problem=_short(each.problem),
            )
        )
    steps = [
        ReplayTreeStep(
            returns=returns[number],
            node=_node_number(tree, step.details.get("node")),
            action=_short(step.action),
            status=_short(step.status),
            result=_node_number(tree, step.details.get("result")),
            score=_number(step.details.get("score")),
            rule=_short(str(step.details.get("rule") or "")),
            changed=_texts(step.details.get("changed")),
        )
        for number, step in enumerate(tree.log)
    ]
    last = returns[len(tree.log)]
    return [*steps, ReplayTreeStep(returns=last)] if last else steps


def _node_number(tree: SearchTree, value: Any) -> int | None:  # noqa: ANN401 - JSON of a file
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < len(tree.nodes) else None


def _number(value: Any) -> float | None:  # noqa: ANN401 - JSON of a file
    """Return a number that JSON can hold."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - JSON of a file
    return [_short(str(each)) for each in value] if isinstance(value, list) else []


def _short(text: str) -> str:
    return shortened(text, MAX_CHARS)
