"""Trees as text, one line for each node, indented by tabs: `role [id] 'name' [state: value]`."""

from __future__ import annotations

from collections.abc import Iterator

from waygraph.agents.observation.ui_tree import UiNode

#: Lines of a text; AgentOccam has the same limit.
MAX_LINES = 1_000


def render(root: UiNode, *, max_lines: int = 0) -> str:
    """Write a tree: a raw one with all its states, or one that `simplify` has returned.

    Parameters
    ----------
    root
        The tree.
    max_lines
        Limit of lines; 0: none. If it is exceeded, the last line says how many are left out.

    Returns
    -------
    str
        The text, without a line break at its end.

    Examples
    --------
    >>> tree = UiNode("main", children=[UiNode("link", "Cart", ref="1"), UiNode("text", "2 items")])
    >>> print(render(tree).expandtabs(2))
    main
      link [1] 'Cart'
      text '2 items'
    """
    lines = list(lines_of(root))
    if max_lines and len(lines) > max_lines:
        hidden = len(lines) - max_lines + 1
        lines = [*lines[: max_lines - 1], f"({hidden} more lines are not shown)"]
    return "\n".join(lines)


def lines_of(root: UiNode) -> Iterator[str]:
    """Yield the lines of a tree; see `render`."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield "\t" * depth + (_row(node) if node.cells is not None else _node(node))
        stack.extend((child, depth + 1) for child in reversed(node.children))


def _node(node: UiNode) -> str:
    parts = [node.role]
    if node.ref or node.part:
        parts.append(f"[{node.ref or node.part}]")
    if node.name:
        parts.append(f"'{node.name}'")
    if node.note:
        parts.append(f"({node.note})")
    # Items of a menu and options of a list have the role that their parent implies; elements of a folded part differ.
    items = "; ".join(_node(item) if node.note and item.ref else _item(item) for item in node.folded)
    return " ".join(parts) + _states(node) + (f" {items}" if items else "")


def _states(node: UiNode) -> str:
    return " [" + ", ".join(f"{key}: {value}" for key, value in node.states.items()) + "]" if node.states else ""


def _item(item: UiNode) -> str:
    """Write an item of a menu or an option of a list, the first one of a group behind the name of the group."""
    states = {key: value for key, value in item.states.items() if key not in {"group", "more"}}
    group = f"({item.states['group']}) " if "group" in item.states else ""
    name = f"… {item.states['more']} more" if "more" in item.states else item.name or "(blank)"
    return group + _id(item) + name + _states(UiNode(item.role, states=states))


def _id(node: UiNode) -> str:
    return f"[{node.ref or node.part}] " if node.ref or node.part else ""


def _row(node: UiNode) -> str:
    before = _id(node)
    cells = (_cell(cell).replace("|", "\\|") for cell in node.cells or ())
    return f"{before}| {' | '.join(cells)} |{_states(node)}"


def _cell(nodes: list[UiNode]) -> str:
    """Write the nodes of a cell, separated by tabs. Text without an id is written without its role."""
    return "\t".join(
        node.name if node.role == "text" and not (node.ref or node.part) else _node(node) for node in nodes
    )
