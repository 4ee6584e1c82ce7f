"""Ways back to a visited node: the checkpoints above it, and the recorded actions from there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Literal

from waygraph.agents.search.dialog_states import opens_again
from waygraph.agents.search.expected_state import changes_before
from waygraph.agents.search.tree import SearchTree, TreeNode

#: `map`: a walk over the map to the state that the node was recognised as. `url`: loading the node's URL.
CheckpointKind = Literal["map", "url"]


@dataclass(frozen=True, slots=True)
class WayBack:
    """A checkpoint, and the nodes that are passed from there.

    Attributes
    ----------
    kind
        How the checkpoint is reached.
    checkpoint
        The node that is reached without the tree's actions.
    replayed
        The nodes after it, the target last; their actions are replayed.
    """

    kind: CheckpointKind
    checkpoint: TreeNode
    replayed: tuple[TreeNode, ...]

    def __str__(self) -> str:
        return f"{self.kind}:{self.checkpoint.id}"


def ways_back(tree: SearchTree, target: int, *, with_map: bool) -> list[WayBack]:
    """Return the ways to a node, those with the fewest replayed actions first.

    A way begins at a node that the map knows apart from those above it, or whose URL, with its fragment, is not that of
    its parent, or at the root. It contains no action that would change data, and none that is not a gesture on an
    element, and does not lead over the root.

    Parameters
    ----------
    tree
        The search.
    target
        The node.
    with_map
        Whether there is a map.

    Returns
    -------
    list of WayBack
        The ways; of equally long ones the one over the map first, which knows whether the URL shows the state.
    """
    ways: list[WayBack] = []
    replayed: tuple[TreeNode, ...] = ()
    for node in tree.ancestry(target):
        if with_map and node.map_state and not _is_as_loaded(tree, node):
            ways.append(WayBack("map", node, replayed))
        if _has_own_url(tree, node) and node.loads != "no":
            ways.append(WayBack("url", node, replayed))
        if not _is_replayable(tree, node):
            break
        replayed = (node, *replayed)
    return ways


def is_reachable(tree: SearchTree, node: int, *, current: int | None = None, with_map: bool) -> bool:
    """Whether the page shows a node, or any way leads back to it: to a dialog, that to the page where it opens."""
    if node == current:
        return True
    if not tree.is_live(node):
        return False
    state = tree.nodes[node]
    if state.dialog:
        is_there = state.parent is not None and is_reachable(tree, state.parent, current=current, with_map=with_map)
        return is_there and opens_again(tree, state)
    return bool(ways_back(tree, node, with_map=with_map))


def _has_own_url(tree: SearchTree, node: TreeNode) -> bool:
    # After a change of data, the state above the root is no longer one that its URL could show instead.
    return node.parent is None or node.id == tree.root or tree.nodes[node.parent].state.full_url != node.state.full_url


def _is_as_loaded(tree: SearchTree, node: TreeNode) -> bool:
    """Whether the map's state of a node is also that of the page that in-page actions made it from.

    The state then stands for both, and a walk there shows the page without what these actions changed.
    """
    changes = changes_before(tree, node)
    before = islice(tree.ancestry(node.id), 1, None)
    return any(change and each.map_state == node.map_state for each, change in zip(before, changes, strict=False))


def _is_replayable(tree: SearchTree, node: TreeNode) -> bool:
    """Whether the action that led to a node may be repeated: it is a gesture, and changes no data."""
    if node.candidate is None:
        return False
    candidate = tree.candidates[node.candidate]
    return candidate.gesture is not None and not candidate.is_destructive and not candidate.changed
