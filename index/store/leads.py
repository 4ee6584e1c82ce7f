"""Table of a version's leads: one row per page that is known and was not visited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from waygraph.core.text import replace_surrogates
from waygraph.index.graph import Action, Lead
from waygraph.index.store.tables import ACTION_TYPE

#: Stands for a value that another column of the row has. No name and no URL is this character.
_SAME = "\x00"

LEAD_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("names", pa.list_(pa.string())),
        ("heading", pa.string()),
        ("description", pa.string()),
        ("state", pa.string()),
        ("action", ACTION_TYPE),
        ("depth", pa.int32()),
        ("refusal", pa.string()),
        ("hidden", pa.bool_()),
        ("lastmod", pa.string()),
    ]
)


def leads_table(leads: Mapping[str, Lead]) -> pa.Table:
    """Convert leads to a table, which may be empty."""
    rows = [
        {
            "id": lead.id,
            "url": lead.url,
            "names": [replace_surrogates(name) for name in lead.names],
            "heading": replace_surrogates(lead.heading),
            "description": replace_surrogates(lead.description),
            "state": lead.state,
            "action": _action(lead),
            "depth": lead.depth,
            "refusal": lead.refusal,
            "hidden": lead.hidden,
            "lastmod": lead.lastmod,
        }
        for lead in leads.values()
    ]
    return pa.Table.from_pylist(rows, schema=LEAD_SCHEMA)


def _action(lead: Lead) -> dict[str, object]:
    """Return the click on the link, without name and target where they are those of the lead: most of its bytes."""
    found = {**lead.action.to_json(), "name": replace_surrogates(lead.action.name)}
    if lead.names[:1] == (lead.action.name,):
        found["name"] = _SAME
    if lead.action.target == lead.url:
        found["target"] = _SAME
    return found


def _read_action(row: dict[str, Any]) -> Action:
    action = dict(row["action"])
    if action["name"] == _SAME:
        action["name"] = row["names"][0]
    if action["target"] == _SAME:
        action["target"] = row["url"]
    return Action.from_json(action)


def read_leads(table: pa.Table) -> dict[str, Lead]:
    """Convert a table back to leads by id."""
    return {
        row["id"]: Lead(**{**row, "names": tuple(row["names"]), "action": _read_action(row)})
        for row in table.select(LEAD_SCHEMA.names).to_pylist()
    }
