"""Table of a version's lineage: one row per state of earlier versions that the version does not have."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

#: `successor` is the state's present id; empty if the state is gone.
LINEAGE_SCHEMA = pa.schema([("id", pa.string()), ("successor", pa.string())])


def lineage_table(lineage: Mapping[str, str]) -> pa.Table:
    """Convert a lineage to a table, which may be empty."""
    return pa.Table.from_pylist(
        [{"id": old, "successor": lineage[old]} for old in sorted(lineage)], schema=LINEAGE_SCHEMA
    )


def read_lineage(table: pa.Table) -> dict[str, str]:
    """Convert a table back to a lineage."""
    return dict(zip(*(table.column(name).to_pylist() for name in LINEAGE_SCHEMA.names), strict=True))
