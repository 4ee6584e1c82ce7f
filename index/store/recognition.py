"""Table of a version's recognition: one row per state with merges, represented pages or evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from waygraph.index.graph import Evidence, Merge, Recognition

_COUNTS = pa.map_(pa.string(), pa.int32())
_STRINGS = pa.list_(pa.string())
RECOGNITION_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("merged", pa.list_(pa.struct([("id", pa.string()), ("reason", pa.string()), ("url", pa.string())]))),
        ("stands_for", pa.int32()),
        (
            "evidence",
            pa.struct([("shows", _COUNTS), ("hides", _COUNTS), ("features", _STRINGS), ("elements", _STRINGS)]),
        ),
    ]
)


def recognition_table(recognition: Recognition) -> pa.Table:
    """Convert a recognition to a table, which may be empty."""
    merged: dict[str, list[dict[str, str]]] = {}
    for merge in recognition.merges.values():
        merged.setdefault(merge.kept, []).append({"id": merge.merged, "reason": merge.reason, "url": merge.url})
    rows = [
        {
            "id": node_id,
            "merged": merged.get(node_id, []),
            "stands_for": recognition.stands_for.get(node_id, 1),
            "evidence": _evidence_row(recognition.evidence.get(node_id)),
        }
        for node_id in sorted(recognition.states())
    ]
    return pa.Table.from_pylist(rows, schema=RECOGNITION_SCHEMA)


def _evidence_row(evidence: Evidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    return {
        "shows": _sorted_items(evidence.shows),
        "hides": _sorted_items(evidence.hides),
        "features": evidence.features,
        "elements": evidence.elements,
    }


def _sorted_items(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items())


def read_recognition(table: pa.Table) -> Recognition:
    """Convert a table back to a recognition."""
    rows = table.select(RECOGNITION_SCHEMA.names).to_pylist()
    return Recognition(
        merges={
            snapshot["id"]: Merge(row["id"], snapshot["id"], snapshot["reason"], snapshot["url"])
            for row in rows
            for snapshot in row["merged"]
        },
        stands_for={row["id"]: row["stands_for"] for row in rows if row["stands_for"] > 1},
        evidence={row["id"]: _evidence(row["evidence"]) for row in rows if row["evidence"] is not None},
    )


def _evidence(row: dict[str, Any]) -> Evidence:
    return Evidence(dict(row["shows"]), dict(row["hides"]), tuple(row["features"]), tuple(row["elements"]))
