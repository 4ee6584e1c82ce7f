"""Passes that write several nodes in one line: menus, tabs, lists of options, terms with their descriptions."""

from __future__ import annotations

from waygraph.agents.observation.ui_tree import UiNode, parents_first

_ITEMS = (frozenset({"menuitem", "menuitemcheckbox", "menuitemradio"}), frozenset({"tab"}), frozenset({"option"}))
_TERM, _DETAIL = "DescriptionListTerm", "DescriptionListDetail"


def fold_items(root: UiNode) -> None:
    """Write items of a menu, tabs and options of a list behind the name of their parent, with their ids."""
    for parent in reversed(parents_first(root)):
        items = [child for child in parent.children if child.name or child.ref or child.states or not child.is_leaf]
        roles = {item.role for item in items}
        is_list_of_tabs = parent.role == "tablist" or "tab" not in roles
        if items and is_list_of_tabs and any(roles <= kind for kind in _ITEMS) and all(item.is_leaf for item in items):
            parent.folded, parent.children = items, []
            chosen = [item for item in parent.folded if "selected" in item.states]
            if len(chosen) > 1:
                parent.states.pop("value", None)  # the options say it
            elif chosen and "value" in parent.states:
                del chosen[0].states["selected"]


def fold_descriptions(root: UiNode) -> None:
    """Write each term of a description list and its details as one text: "term: detail; detail"."""
    for parent in parents_first(root):
        if parent.role == "DescriptionList":
            parent.children = _folded_descriptions(parent.children)


def _folded_descriptions(children: list[UiNode]) -> list[UiNode]:
    folded: list[UiNode] = []
    i = 0
    while i < len(children):
        end = i + 1
        while end < len(children) and children[end].role == _DETAIL:
            end += 1
        group = children[i:end]
        if group[0].role == _TERM and len(group) > 1 and all(node.is_leaf and not node.ref for node in group):
            details = "; ".join(node.name for node in group[1:] if node.name)
            folded.append(UiNode("text", f"{group[0].name}: {details}"))
        else:
            folded += group
        i = end
    return folded
