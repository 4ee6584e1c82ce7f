"""Trees of accessibility nodes, which the passes of `simplify` change in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from waygraph.pipeline.browser.page.snapshot import OutlineNode

#: Roles of nodes that hold text and nothing else.
TEXT_ROLES = frozenset({"StaticText", "LabelText", "text"})


@dataclass(slots=True)
class UiNode:
    """A node of the tree.

    Attributes
    ----------
    role
        Role, as in `OutlineNode`.
    name
        Accessible name, or the text.
    states
        States and properties with their values.
    ref
        Short id of the element; empty: it cannot be acted on.
    children
        Children, in document order.
    folded
        Children that are written behind the name, separated by semicolons: items of a menu, options of a list.
    cells
        Contents of the cells of a table row that is written as one line of Markdown; None: this is no such row.
    part
        Id that shows the rest of the node, if it has no `ref`; empty: nothing is left out.
    note
        What is said about the node in the text.
    """

    role: str
    name: str = ""
    states: dict[str, str] = field(default_factory=dict)
    ref: str = ""
    children: list[UiNode] = field(default_factory=list)
    folded: list[UiNode] = field(default_factory=list)
    cells: list[list[UiNode]] | None = None
    part: str = ""
    note: str = ""

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no content but its name."""
        return not self.children and not self.folded and self.cells is None

    @property
    def is_text(self) -> bool:
        """Whether the node is a piece of text that cannot be acted on."""
        return self.role in TEXT_ROLES and self.is_leaf and not self.ref

    def parts(self) -> Iterator[UiNode]:
        """Yield the nodes directly below this one, in the order in which they are written."""
        yield from self.folded
        for cell in self.cells or ():
            yield from cell
        yield from self.children

    def walk(self) -> Iterator[UiNode]:
        """Yield this node and everything below it, in document order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(list(node.parts())))

    def refs(self) -> list[str]:
        """Return the ids of this node and of everything below it, in document order."""
        return [node.ref for node in self.walk() if node.ref]

    def copy(self) -> UiNode:
        """Return a copy of the whole tree."""
        return UiNode(
            self.role,
            self.name,
            dict(self.states),
            self.ref,
            [child.copy() for child in self.children],
            [item.copy() for item in self.folded],
            None if self.cells is None else [[node.copy() for node in cell] for cell in self.cells],
            self.part,
            self.note,
        )


def build_tree(outline: Sequence[OutlineNode], refs: Sequence[str], *, title: str = "") -> UiNode:
    """Build a tree from the rows of an outline.

    Parameters
    ----------
    outline
        Rows in document order. A row may be deeper than its predecessor by any number; it is its child then.
    refs
        Short ids of the rows; empty for a row that cannot be acted on.
    title
        Title of the document, which names the root.

    Returns
    -------
    UiNode
        The root, with the role `RootWebArea`.
    """
    root = UiNode("RootWebArea", title)
    path: list[tuple[int, UiNode]] = [(-1, root)]
    for row, ref in zip(outline, refs, strict=True):
        while path[-1][0] >= row.depth:
            path.pop()
        node = UiNode(row.role, row.name, dict(row.states), ref)
        path[-1][1].children.append(node)
        path.append((row.depth, node))
    return root


def parents_first(root: UiNode) -> list[UiNode]:
    """Return all nodes that have children, parents before their children."""
    found = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node.children:
            found.append(node)
            stack.extend(reversed(node.children))
    return found
