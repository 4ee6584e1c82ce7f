"""How is written what became of the states of earlier versions? One row per id that the version does not have."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

#: `successor` is the state's present id, empty when it is gone.
LINEAGE = pa.schema([("id", pa.string()), ("successor", pa.string())])


def lineage_table(lineage: Mapping[str, str]) -> pa.Table:
    """A table, which may be empty."""
    return pa.Table.from_pylist([{"id": old, "successor": lineage[old]} for old in sorted(lineage)], schema=LINEAGE)


def read_lineage(table: pa.Table) -> dict[str, str]:
    """Inverse of `lineage_table`."""
    return dict(zip(*(table.column(name).to_pylist() for name in LINEAGE.names), strict=True))
