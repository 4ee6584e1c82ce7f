"""Table of a version's generated descriptions: one row per described state."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from waygraph.core.text import replace_surrogates
from waygraph.index.graph import Description

DESCRIPTION_SCHEMA = pa.schema(
    [
        ("node_id", pa.string()),
        ("sentence", pa.string()),
        ("questions", pa.list_(pa.string())),
        ("model", pa.string()),
        ("key", pa.string()),
        ("kind", pa.string()),
    ]
)


def descriptions_table(descriptions: Mapping[str, Description]) -> pa.Table:
    """Convert descriptions to a table, which may be empty."""
    rows = [
        {
            "node_id": node_id,
            "sentence": replace_surrogates(each.sentence),
            "questions": [replace_surrogates(question) for question in each.questions],
            "model": replace_surrogates(each.model),
            "key": each.key,
            "kind": replace_surrogates(each.kind),
        }
        for node_id, each in sorted(descriptions.items())
    ]
    return pa.Table.from_pylist(rows, schema=DESCRIPTION_SCHEMA)


def read_descriptions(table: pa.Table) -> dict[str, Description]:
    """Convert a table back to descriptions by node id."""
    return {
        row.pop("node_id"): Description(**{**row, "questions": tuple(row["questions"])})
        for row in table.select(DESCRIPTION_SCHEMA.names).to_pylist()
    }
