"""Table of a version's tools: one row for each distinct tool, with the states that have it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from waygraph.core.text import replace_surrogates
from waygraph.index.graph import Action, Tool
from waygraph.index.store.tables import ACTION_TYPE

#: Columns that hold the tool's attribute of the same name.
_TEXTS = ("name", "title", "description", "source", "origin", "frame", "method", "target")
_HINTS = ("read_only", "untrusted", "consequential", "autosubmit")

TOOL_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        *((name, pa.string()) for name in _TEXTS),
        ("schema", pa.string()),
        ("states", pa.list_(pa.string())),
        # At most one: whatever is null in a table is damaged.
        ("element", pa.list_(ACTION_TYPE)),
        *((name, pa.bool_()) for name in _HINTS),
    ]
)


def tools_table(tools: Mapping[str, Tool]) -> pa.Table:
    """Convert tools to a table, which may be empty."""
    rows = [
        {
            "id": tool.id,
            **{name: replace_surrogates(getattr(tool, name)) for name in _TEXTS},
            "schema": json.dumps(tool.schema),
            "states": list(tool.states),
            "element": [tool.element.to_json()] if tool.element else [],
            **{name: getattr(tool, name) for name in _HINTS},
        }
        for tool in tools.values()
    ]
    return pa.Table.from_pylist(rows, schema=TOOL_SCHEMA)


def read_tools(table: pa.Table) -> dict[str, Tool]:
    """Convert a table back to tools by id."""
    return {
        row["id"]: Tool(
            **{
                **row,
                "schema": json.loads(row["schema"]),
                "states": tuple(row["states"]),
                "element": Action.from_json(row["element"][0]) if row["element"] else None,
            }
        )
        for row in table.select(TOOL_SCHEMA.names).to_pylist()
    }
