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
    lines = list(_lines(root))
    if max_lines and len(lines) > max_lines:
        hidden = len(lines) - max_lines + 1
        lines = [*lines[: max_lines - 1], f"({hidden} more lines are not shown)"]
    return "\n".join(lines)


def _lines(root: UiNode) -> Iterator[str]:
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield "\t" * depth + (_row(node) if node.cells is not None else _node(node))
        stack.extend((child, depth + 1) for child in reversed(node.children))


def _node(node: UiNode) -> str:
    parts = [node.role]
    if node.ref:
        parts.append(f"[{node.ref}]")
    if node.name:
        parts.append(f"'{node.name}'")
    if node.folded:
        parts.append("; ".join(_item(item) for item in node.folded))
    return " ".join(parts) + _states(node)


def _states(node: UiNode) -> str:
    return " [" + ", ".join(f"{key}: {value}" for key, value in node.states.items()) + "]" if node.states else ""


def _item(item: UiNode) -> str:
    return (f"[{item.ref}] " if item.ref else "") + item.name + _states(item)


def _row(node: UiNode) -> str:
    before = f"[{node.ref}] " if node.ref else ""
    cells = (_cell(cell).replace("|", "\\|") for cell in node.cells or ())
    return f"{before}| {' | '.join(cells)} |{_states(node)}"


def _cell(nodes: list[UiNode]) -> str:
    """Write the nodes of a cell, separated by tabs. Text without an id is written without its role."""
    return "\t".join(node.name if node.role == "text" and not node.ref else _node(node) for node in nodes)
