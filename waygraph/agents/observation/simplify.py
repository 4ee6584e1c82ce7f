"""The simplified tree: AgentOccam's passes over the accessibility tree (arXiv:2410.13825, section 3.1), in order.

Besides what the paper does, nodes that hold nothing but one child are replaced by it, and images with an alternative
text of their own stay. No pass removes an element that can be acted on: ids of folded items, cells and rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable

from waygraph.agents.observation.passes.folding import fold_descriptions, fold_items
from waygraph.agents.observation.passes.structure import (
    collapse_same_names,
    drop_states,
    hide_images,
    hide_labels_of_parts,
    hide_repeated_leaves,
    hide_wrappers,
)
from waygraph.agents.observation.passes.tables import flatten_layout_tables, write_tables
from waygraph.agents.observation.passes.text import (
    clean_characters,
    halve_names,
    hide_redundant_text,
    lift_only_text,
    rename_text,
)
from waygraph.agents.observation.ui_tree import UiNode

#: Changes a tree in place.
Pass = Callable[[UiNode], None]

PASSES: tuple[Pass, ...] = (
    clean_characters,
    drop_states,
    halve_names,
    hide_redundant_text,
    hide_images,
    hide_repeated_leaves,
    lift_only_text,
    hide_redundant_text,
    rename_text,
    hide_labels_of_parts,
    fold_items,
    fold_descriptions,
    flatten_layout_tables,
    write_tables,
    hide_wrappers,
    collapse_same_names,
    hide_redundant_text,
    hide_repeated_leaves,
)


def simplify(root: UiNode) -> UiNode:
    """Return a simplified copy of a tree.

    Parameters
    ----------
    root
        The tree; it is not changed.

    Returns
    -------
    UiNode
        The copy. It contains every id of the tree, once.
    """
    tree = root.copy()
    for change in PASSES:
        change(tree)
    return tree
