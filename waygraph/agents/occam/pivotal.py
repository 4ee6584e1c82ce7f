"""The part of a page that mattered: highlighted elements with what is around them (AgentOccam, section 4.2)."""

from __future__ import annotations

from collections.abc import Collection

from waygraph.agents.observation.render import render
from waygraph.agents.observation.ui_tree import UiNode

#: A part with as many nodes or words is replaced by the model's own description.
MAX_NODES, MAX_WORDS = 30, 200


def pivotal_text(root: UiNode, refs: Collection[str]) -> str | None:
    """Return the highlighted elements, their descendants, ancestors, and siblings with names, as text.

    Parameters
    ----------
    root
        The simplified tree of the page; it is not changed.
    refs
        Ids of the highlighted elements.

    Returns
    -------
    str or None
        The text; None if none of the ids is on the page, or if there is too much.
    """
    kept = _pivotal(root.copy(), frozenset(refs))
    if kept is None:
        return None
    text = render(kept)
    is_small = sum(1 for _ in kept.walk()) < MAX_NODES and len(text.split()) < MAX_WORDS
    return text if is_small else None


def _pivotal(node: UiNode, refs: frozenset[str]) -> UiNode | None:
    """Cut a tree down to what matters, in place; None: nothing in it does."""
    if node.ref in refs or any(part.ref in refs for part in (*node.folded, *_cells(node))):
        return node
    kept = {id(child): _pivotal(child, refs) for child in node.children}
    if not any(each is not None for each in kept.values()):
        return None
    children = []
    for child in node.children:
        cut = kept[id(child)]
        if cut is not None:
            children.append(cut)
        elif child.name:
            # A sibling without anything that matters is shown by itself, not with what is below it.
            children.append(UiNode(child.role, child.name, child.states, child.ref))
    node.children = children
    return node


def _cells(node: UiNode) -> list[UiNode]:
    return [part for cell in node.cells or () for top in cell for part in top.walk()]
