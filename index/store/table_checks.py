"""Checks of a version's tables: what readers take for granted holds, whoever wrote the files.

The hashes in a manifest detect damage, not a writer who computes them anew. All checks work on whole columns and raise
ValueError; a version that fails one is not opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from waygraph.index.graph.model import ActionKind
from waygraph.index.graph.tool import ToolSource
from waygraph.index.store.descriptions import DESCRIPTION_SCHEMA
from waygraph.index.store.leads import LEAD_SCHEMA
from waygraph.index.store.lineage import LINEAGE_SCHEMA
from waygraph.index.store.manifest import Manifest
from waygraph.index.store.names import DIGEST_PATTERN, STATE_ID_PATTERN
from waygraph.index.store.recognition import RECOGNITION_SCHEMA
from waygraph.index.store.tables import EDGE_SCHEMA, NODE_SCHEMA, VECTOR_SCHEMA
from waygraph.index.store.tools import TOOL_SCHEMA

_ID = f"^(?:{STATE_ID_PATTERN})$"
_OPTIONAL_DIGEST = f"^(?:{DIGEST_PATTERN})?$"
_TOOL_SOURCES = pa.array(get_args(ToolSource), pa.string())
_ACTION_KINDS = pa.array(get_args(ActionKind), pa.string())
#: Columns whose values may be null: a state without observation, or without evidence.
_NULLABLE = frozenset({"observation", "evidence"})
#: Columns that tables of earlier versions lack.
_ADDED_LATER = frozenset({"openers"})
#: Largest duration in milliseconds: 11 days. Sums of them stay finite.
_MAX_MS = 10**9
#: A float16 without its sign, as an integer: infinity, which undefined values exceed and all finite ones do not reach.
_MAGNITUDE, _INFINITY = np.uint16(0x7FFF), 0x7C00


def check_nodes(table: pa.Table, manifest: Manifest) -> pa.Array:
    """Check the states of a version and return their ids."""
    check_columns(table, NODE_SCHEMA)
    ids = _unique_ids(table.column("id"), "states")
    if not len(ids) or ids[0].as_py() != manifest.start_node_id:
        raise ValueError("its first state is not the start state of its manifest")
    _check_count(len(ids), manifest.counts.states, "states")
    observations = table.column("observation")
    _check_count(len(ids) - observations.null_count, manifest.counts.observations, "observations")
    _check_numbers(table.column("depth"), "depth", most=manifest.counts.depth)
    _check_numbers(table.column("load_ms"), "load_ms", most=_MAX_MS)
    for name in ("screenshot", "dom", "aria"):
        if not _matches(pc.struct_field(observations, name), _OPTIONAL_DIGEST):
            raise ValueError(f"an observation names a blob that cannot exist under '{name}'")
    return ids


def check_edges(table: pa.Table, manifest: Manifest, states: pa.Array) -> None:
    """Check the edges of a version: both ends are states, and costs and actions are such."""
    check_columns(table, EDGE_SCHEMA)
    _check_count(len(table), manifest.counts.edges + manifest.counts.inherited_edges, "edges")
    for name in ("source", "target"):
        _check_known(table.column(name), states, f"the {name} of an edge")
    _check_numbers(table.column("cost_ms"), "cost_ms", most=_MAX_MS)
    _check_actions(table.column("action"))
    if "openers" in table.column_names:
        _check_actions(pc.list_flatten(table.column("openers")))


def check_pages(table: pa.Table, known: pa.Array, dim: int, *, pages: int, rows: int | None = None) -> None:
    """Check multi-vectors: of known states, leads or tools, finite, of the encoder's width, each row with its text.

    Parameters
    ----------
    table
        The table.
    known
        Ids of the states, leads or tools.
    dim
        Width of the vectors.
    pages
        Number of multi-vectors that the manifest names; at least as many as there are.
    rows
        Number of their rows; None: the manifest does not name it.
    """
    check_columns(table, VECTOR_SCHEMA)
    _check_known(_unique_ids(table.column("node_id"), "multi-vectors"), known, "a multi-vector")
    if (len(table) > pages) if rows is None else (len(table) != pages):
        raise ValueError(f"it has {len(table)} multi-vectors, and its manifest says {pages}")
    total = 0
    for batch in table.to_batches():
        sizes, texts, segments = (
            batch.column(name).value_lengths().to_numpy() for name in ("values", "rows", "segments")
        )
        if (sizes % dim).any() or (sizes == 0).any():
            raise ValueError(f"its vectors do not consist of rows of {dim} values")
        if (sizes // dim != texts).any() or (texts != segments).any():
            raise ValueError("the numbers of its vectors, texts and segments differ")
        values = batch.column("values").flatten().to_numpy().view(np.uint16)
        if len(values) and (values & _MAGNITUDE).max() >= _INFINITY:
            raise ValueError("it has vectors with infinite or undefined values")
        _check_numbers(pa.chunked_array([batch.column("segments").flatten().flatten()]), "the number of a segment")
        total += int(texts.sum())
    if rows is not None:
        _check_count(total, rows, "vectors")


def check_leads(table: pa.Table, manifest: Manifest, states: pa.Array) -> pa.Array:
    """Check the leads of a version and return their ids."""
    check_columns(table, LEAD_SCHEMA)
    ids = _unique_ids(table.column("id"), "leads")
    _check_count(len(ids), manifest.counts.leads, "leads")
    if pc.any(pc.is_in(ids, states)).as_py():
        raise ValueError("a lead has the id of a state")
    _check_known(table.column("state"), states, "the state of a lead")
    _check_numbers(table.column("depth"), "depth")
    _check_actions(table.column("action"))
    return ids


def check_lineage(table: pa.Table, present: pa.Array) -> None:
    """Check the lineage: ids of earlier states lead to a state or lead that is there, or nowhere."""
    check_columns(table, LINEAGE_SCHEMA)
    _unique_ids(table.column("id"), "earlier states")
    successors = table.column("successor")
    _check_known(successors.filter(pc.not_equal(successors, "")), present, "a successor")


def check_recognition(table: pa.Table, states: pa.Array) -> None:
    """Check the recognition: it is about states, and names each snapshot once."""
    check_columns(table, RECOGNITION_SCHEMA)
    _check_known(_unique_ids(table.column("id"), "rows of recognition"), states, "recognition")
    _check_numbers(table.column("stands_for"), "stands_for", least=1)
    _unique_ids(pc.struct_field(pc.list_flatten(table.column("merged")), "id"), "merged snapshots")


def check_descriptions(table: pa.Table, states_and_leads: pa.Array) -> None:
    """Check the generated descriptions: each is of one state or lead."""
    check_columns(table, DESCRIPTION_SCHEMA)
    _check_known(_unique_ids(table.column("node_id"), "descriptions"), states_and_leads, "a description")


def check_tools(table: pa.Table, manifest: Manifest, states: pa.Array) -> pa.Array:
    """Check the tools of a version and return their ids: each is of states that it has; its schema is an object."""
    check_columns(table, TOOL_SCHEMA)
    ids = _unique_ids(table.column("id"), "tools")
    _check_count(len(ids), manifest.counts.tools, "tools")
    _check_known(pc.list_flatten(table.column("states")), states, "a tool")
    if not pc.all(pc.greater(pc.list_value_length(table.column("states")), 0), min_count=0).as_py():
        raise ValueError("a tool is of no state")
    _check_actions(pc.list_flatten(table.column("element")))
    if not pc.all(pc.is_in(table.column("source"), _TOOL_SOURCES), min_count=0).as_py():
        raise ValueError("a tool has an unknown source")
    for text in table.column("schema").to_pylist():
        if not isinstance(json.loads(text), dict):
            raise ValueError("the schema of a tool is no JSON object")  # noqa: TRY004 - as all checks do
    return ids


def check_columns(table: pa.Table, schema: pa.Schema) -> None:
    """Check names, types and absence of null; further columns, of a newer writer, are ignored."""
    for field in schema:
        if field.name not in table.column_names:
            if field.name in _ADDED_LATER:
                continue
            raise ValueError(f"it has no column '{field.name}'")
        column = table.column(field.name)
        if not _fits(column.type, field.type):
            raise ValueError(f"its column '{field.name}' is {column.type}, not {field.type}")
        for chunk in column.chunks:
            _check_no_nulls(chunk.drop_null() if field.name in _NULLABLE else chunk, field.type, field.name)


def _fits(actual: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_struct(expected):
        return pa.types.is_struct(actual) and all(
            actual.get_field_index(field.name) >= 0 and _fits(actual.field(field.name).type, field.type)
            for field in expected
        )
    if pa.types.is_list(expected):
        return pa.types.is_list(actual) and _fits(actual.value_type, expected.value_type)
    return bool(actual.equals(expected))


def _check_no_nulls(array: pa.Array, expected: pa.DataType, name: str) -> None:
    if array.null_count:
        raise ValueError(f"a value of '{name}' is null")
    for part, inner, of in _parts(array, expected):
        _check_no_nulls(part, inner, f"{name}.{of}" if of else name)


def _parts(array: pa.Array, expected: pa.DataType) -> Iterator[tuple[pa.Array, pa.DataType, str]]:
    """Yield the arrays of which an array consists."""
    if pa.types.is_struct(expected):
        for field in expected:
            yield array.field(field.name), field.type, field.name
    elif pa.types.is_map(expected):
        yield array.keys, expected.key_type, ""
        yield array.items, expected.item_type, ""
    elif pa.types.is_list(expected):
        yield array.flatten(), expected.value_type, ""


def _unique_ids(column: pa.ChunkedArray, what: str) -> pa.Array:
    ids = column.combine_chunks()
    if not _matches(column, _ID):
        raise ValueError(f"the id of one of its {what} is malformed")
    if pc.count_distinct(ids).as_py() != len(ids):
        raise ValueError(f"two of its {what} have the same id")
    return ids


def _matches(column: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern), min_count=0).as_py())


def _check_known(column: pa.ChunkedArray | pa.Array, known: pa.Array, what: str) -> None:
    if not pc.all(pc.is_in(column, known), min_count=0).as_py():
        raise ValueError(f"{what} is of a state that it does not have")


def _check_numbers(column: pa.ChunkedArray, name: str, *, least: int = 0, most: int | None = None) -> None:
    values = column.to_numpy()
    # Comparisons with an undefined value are false.
    if not ((values >= least) & (values < (np.inf if most is None else most + 1))).all():
        raise ValueError(f"a value of '{name}' is out of range")


def _check_actions(column: pa.ChunkedArray) -> None:
    if not pc.all(pc.is_in(pc.struct_field(column, "kind"), _ACTION_KINDS), min_count=0).as_py():
        raise ValueError("an action is of an unknown kind")
    _check_numbers(pc.struct_field(column, "nth"), "nth")


def _check_count(found: int, named: int, what: str) -> None:
    if found != named:
        raise ValueError(f"it has {found} {what}, and its manifest says {named}")
