"""Passes over tables: data tables become lines of Markdown, tables that only lay out a page disappear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waygraph.agents.observation.ui_tree import UiNode, parents_first

TABLE_ROLES = frozenset({"table", "grid", "treegrid"})
_CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
_ROWS = frozenset({"row", "rowgroup"})
#: Content that no data table has in its cells.
_LAYOUT_MARKS = frozenset({"heading", "form", "navigation", "main", "banner", "contentinfo", "search", *TABLE_ROLES})
#: Nodes in one cell above which a table lays out a page.
_MAX_CELL_NODES = 40
#: Roles that are written without their name: the column says what the cell is.
_SILENT = frozenset({"text", "StaticText", "paragraph", "generic", "LabelText"})


def flatten_layout_tables(root: UiNode) -> None:
    """Replace tables that lay out a page, and rows and cells outside of tables, by their content."""
    for node in root.walk():
        if node.role in TABLE_ROLES and not node.ref and _is_layout(node):
            node.role = "generic"
    _flatten(root, in_table=False)


def _flatten(node: UiNode, *, in_table: bool) -> None:
    """Replace rows and cells without a table by their children; nodes with an id stay as `generic`."""
    kept: list[UiNode] = []
    for child in node.children:
        inside = child.role in TABLE_ROLES or (in_table and child.role in _ROWS)
        _flatten(child, in_table=inside)
        if in_table or child.role not in _ROWS | _CELLS:
            kept.append(child)
        elif child.ref:
            child.role = "generic"
            kept.append(child)
        else:
            kept += [UiNode("text", child.name)] if child.name else []
            kept += child.children
    node.children = kept


def _is_layout(table: UiNode) -> bool:
    rows = list(_rows_of(table))
    cells = [cell for row in rows for cell in row.children]
    if any(cell.role in {"columnheader", "rowheader"} for cell in cells):
        return any(_holds(cell, TABLE_ROLES) for cell in cells)
    if not rows or len(rows) == 1 or all(len(row.children) <= 1 for row in rows):
        return table.role == "table"
    return any(_holds(cell, _LAYOUT_MARKS) or sum(1 for _ in cell.walk()) > _MAX_CELL_NODES for cell in cells)


def _holds(cell: UiNode, roles: frozenset[str]) -> bool:
    return any(node.role in roles for child in cell.children for node in child.walk())


def _rows_of(table: UiNode) -> Iterator[UiNode]:
    for child in table.children:
        if child.role == "row":
            yield child
        elif child.role == "rowgroup":
            yield from _rows_of(child)


def write_tables(root: UiNode) -> None:
    """Turn the rows of data tables into lines of Markdown.

    A row of column headers becomes the header. A table whose rows all start with a header is transposed. Rows that can
    be acted on keep their id. A table with something beside its rows keeps it as children.
    """
    for table in parents_first(root):
        if table.role in TABLE_ROLES:
            others = list(_beside_rows(table))
            table.children = [*others, *_lines(list(_rows_of(table)))]


def _beside_rows(table: UiNode) -> Iterator[UiNode]:
    for child in table.children:
        if child.role == "rowgroup":
            yield from _beside_rows(child)
            if child.ref:
                yield UiNode(child.role, child.name, child.states, child.ref)
        elif child.role != "row":
            yield child


def _lines(rows: Sequence[UiNode]) -> list[UiNode]:
    if not rows:
        return []
    if _starts_with_headers(rows):
        return _transposed(rows)
    lines: list[UiNode] = []
    for number, row in enumerate(rows):
        lines.append(_line(row, [_content(cell) for cell in row.children]))
        if number == 0 and row.children and all(cell.role == "columnheader" for cell in row.children):
            lines.append(_separator(len(row.children)))
    return lines


def _starts_with_headers(rows: Sequence[UiNode]) -> bool:
    lengths = {len(row.children) for row in rows}
    return (
        len(lengths) == 1
        and lengths.pop() > 1
        and len(rows) > 1
        and not any(row.ref for row in rows)
        and all(row.children[0].role == "rowheader" for row in rows)
        and all(cell.role in {"cell", "gridcell"} for row in rows for cell in row.children[1:])
    )


def _transposed(rows: Sequence[UiNode]) -> list[UiNode]:
    columns = [[_content(row.children[i]) for row in rows] for i in range(len(rows[0].children))]
    header, *others = (UiNode("row", cells=column) for column in columns)
    return [header, _separator(len(rows)), *others]


def _separator(columns: int) -> UiNode:
    return UiNode("row", cells=[[UiNode("text", "---")] for _ in range(columns)])


def _line(row: UiNode, cells: list[list[UiNode]]) -> UiNode:
    return UiNode("row", "", row.states if row.ref else {}, row.ref, cells=cells)


def _content(cell: UiNode) -> list[UiNode]:
    """Return the nodes of a cell as a flat list."""
    flat: list[UiNode] = []
    for node in cell.walk():
        if node is cell:
            if not cell.ref:
                flat += [UiNode("text", cell.name)] if cell.name else []
                continue
        elif not (node.ref or node.name or node.states):
            continue
        role = "text" if node.role in _SILENT and not node.ref else node.role
        flat.append(UiNode(role, node.name, node.states, node.ref))
    return flat
