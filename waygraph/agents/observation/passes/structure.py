"""Passes over structure: states that say little, images, repeated leaves, wrappers, headings around links."""

from __future__ import annotations

from waygraph.agents.observation.passes.text import contains
from waygraph.agents.observation.ui_tree import TEXT_ROLES, UiNode, parents_first

#: Properties that AgentOccam leaves out, and the level of headings, which WebArena's tree leaves out.
_DROPPED = frozenset(
    {"focused", "autocomplete", "hasPopup", "expanded", "multiselectable", "orientation", "controls", "level"}
)
#: States that say something only if they are true.
_ONLY_TRUE = frozenset({"selected", "pressed", "current", "busy", "required", "readonly", "disabled"})
#: Roles without a meaning of their own once they hold one child, or nothing.
_WRAPPERS = frozenset(
    {
        "generic", "paragraph", "listitem", "list", "group", "rowgroup", "article", "LabelText", "Figcaption", "figure",
        "Legend", "text", "StaticText", "form", "search", "blockquote", "caption", "region", "tabpanel",
    }
)  # fmt: skip
_CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
#: Roles of boxes for controls, which say nothing without them.
_FOR_CONTROLS = frozenset({"toolbar", "tablist", "menubar", "menu"})


def drop_states(root: UiNode) -> None:
    """Remove states that rarely matter for a decision."""
    for node in root.walk():
        node.states = {
            key: value
            for key, value in node.states.items()
            if key not in _DROPPED and not (key in _ONLY_TRUE and value == "false")
        }


def hide_images(root: UiNode) -> None:
    """Remove images without a name, and those whose name is next to them or that a link is named by.

    AgentOccam removes all images without content. Others stay here: their alternative text may be said nowhere else.
    """
    for parent in parents_first(root):
        children = parent.children
        kept = []
        for i, node in enumerate(children):
            if node.role == "img" and node.is_leaf and not node.ref:
                names = [parent.name, *(children[j].name for j in (i - 1, i + 1) if 0 <= j < len(children))]
                if not node.name or any(contains(name, node.name) for name in names if name):
                    continue
            kept.append(node)
        parent.children = kept


def hide_repeated_leaves(root: UiNode) -> None:
    """Remove leaves that equal their neighbour in role, name and states. Cells of a row may be equal."""
    for parent in parents_first(root):
        if parent.role == "row":
            continue
        kept: list[UiNode] = []
        for node in parent.children:
            last = kept[-1] if kept else None
            if last and node.is_leaf and last.is_leaf and not node.ref and (node.role, node.name, node.states) == (
                last.role, last.name, last.states,
            ):  # fmt: skip
                continue
            kept.append(node)
        parent.children = kept


def hide_wrappers(root: UiNode) -> None:
    """Remove nodes that say nothing themselves, and replace those with a single child by it."""
    for parent in reversed(parents_first(root)):
        if parent.role == "row":
            continue  # an empty cell keeps the others in their columns
        parent.children = [node for child in parent.children for node in _unwrapped(child)]


def _unwrapped(node: UiNode) -> list[UiNode]:
    if node.role in _FOR_CONTROLS and node.is_leaf and not node.ref:
        return []
    says_nothing = not (node.name or node.ref or node.states)
    if not says_nothing or node.folded or node.cells is not None or node.role in _CELLS:
        return [node]
    if not node.children:
        return []
    if node.role == "generic" or (len(node.children) == 1 and node.role in _WRAPPERS):
        return node.children
    return [node]


def hide_labels_of_parts(root: UiNode) -> None:
    """Remove the name of a part that its tab or the heading before or in it says."""
    tabs = {node.name for node in root.walk() if node.role == "tab"}
    for parent in parents_first(root):
        for before, node in zip([None, *parent.children], parent.children, strict=False):
            if node.ref or not node.name:
                continue
            headings = [each.name for each in (before, *node.children[:1]) if each and each.role == "heading"]
            if (node.role == "tabpanel" and node.name in tabs) or (node.role == "region" and node.name in headings):
                node.name = ""


def collapse_same_names(root: UiNode) -> None:
    """Keep one of two nested nodes with the same name: the one that can be acted on."""
    for parent in reversed(parents_first(root)):
        parent.children = [_collapsed(node) for node in parent.children]


def _collapsed(node: UiNode) -> UiNode:
    if len(node.children) != 1 or not node.name:
        return node
    child = node.children[0]
    if child.name != node.name or child.cells is not None or child.folded or node.folded:
        return node
    if not child.ref and not child.states:
        # Content of a link that repeats its name.
        if child.is_leaf or child.role in TEXT_ROLES or child.role == "heading":
            node.children = child.children
        return node
    if node.ref or node.states or child.role in _CELLS:
        return node
    return child
