"""States of a search that are a JavaScript dialog: what opened one, and whether it can be opened again."""

from __future__ import annotations

import hashlib

from waygraph.agents.search.tree import SearchTree, TreeCandidate, TreeNode

_KEY_DIGITS = 12


def opener_of(tree: SearchTree, node: TreeNode) -> TreeCandidate | None:
    """Return the action that opened the dialog of a node; None: the search began with it, or it shows a page."""
    return tree.candidates[node.candidate] if node.dialog and node.candidate is not None else None


def dialog_key(tree: SearchTree, node: TreeNode) -> str:
    """Return a text that equal questions have in common: what they ask, and what opened them. Empty for a page.

    "Delete it?" is asked by two buttons, and means two things.
    """
    opener = opener_of(tree, node)
    asked = f"{opener.key if opener is not None else ''} {node.dialog}"
    return hashlib.sha256(asked.encode()).hexdigest()[:_KEY_DIGITS] if node.dialog else ""


def opens_again(tree: SearchTree, node: TreeNode) -> bool:
    """Whether the dialog of a node may be opened again: nothing changed when it opened, and no answer opened it."""
    opener = opener_of(tree, node)
    return opener is not None and not opener.changed and opener.action.action not in {"accept", "dismiss"}


def page_behind(tree: SearchTree, node: TreeNode) -> TreeNode:
    """Return the page on which the dialog of a node opened; a node that shows a page is returned as it is."""
    while node.dialog and node.parent is not None:
        node = tree.nodes[node.parent]
    return node
