"""Arrow tables of graphs, observations and vectors: pure conversions in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from waygraph.core.text import replace_surrogates
from waygraph.index.graph import Action, BlockedRequest, Box, Edge, InteractionGraph, Node, Observation, Segment
from waygraph.index.vectors.multivector import EncodedPage

_STRINGS = pa.list_(pa.string())
_SEGMENT = pa.struct(
    [("text", pa.string()), ("role", pa.string()), *((side, pa.int32()) for side in ("x", "y", "width", "height"))]
)
_OBSERVATION = pa.struct(
    [
        ("url", pa.string()),
        ("title", pa.string()),
        ("screenshot", pa.string()),
        ("dom", pa.string()),
        ("aria", pa.string()),
        ("segments", pa.list_(_SEGMENT)),
    ]
)
#: One row per state, the start state first; `observation` is null if there is none.
NODE_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("title", pa.string()),
        ("structure", _STRINGS),
        ("depth", pa.int32()),
        ("addressable", pa.bool_()),
        ("load_ms", pa.float64()),
        ("address", pa.string()),
        ("status", pa.int32()),
        ("waiting", pa.bool_()),
        ("observation", _OBSERVATION),
    ]
)
ACTION_TYPE = pa.struct(
    [
        ("kind", pa.string()),
        ("url", pa.string()),
        ("frame", _STRINGS),
        ("role", pa.string()),
        ("name", pa.string()),
        ("nth", pa.int32()),
        ("xpath", pa.string()),
        ("css", pa.string()),
        ("target", pa.string()),
        ("value", pa.string()),
    ]
)
EDGE_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("target", pa.string()),
        ("action", ACTION_TYPE),
        ("cost_ms", pa.float64()),
        ("inherited", pa.bool_()),
        ("openers", pa.list_(ACTION_TYPE)),
        ("opens_tab", pa.bool_()),
        ("blocked", pa.list_(pa.struct([("method", pa.string()), ("url", pa.string()), ("kind", pa.string())]))),
        ("dialogs", _STRINGS),
    ]
)
#: One row per encoded state; `values` are the rows of its matrix in order, `dim` is in the manifest.
VECTOR_SCHEMA = pa.schema(
    [
        ("node_id", pa.string()),
        ("values", pa.list_(pa.float16())),
        ("rows", _STRINGS),
        ("segments", pa.list_(pa.list_(pa.int32()))),
    ]
)

#: How Parquet encodes vectors of states. Values of float16 hardly repeat, so that a dictionary of them only costs time
#: and space; their high bytes repeat, and compress when they follow each other.
VECTOR_ENCODING: Mapping[str, Any] = {
    "use_dictionary": ["rows.list.element"],
    "column_encoding": {"values.list.element": "BYTE_STREAM_SPLIT"},
}
#: Values per batch of vectors: 32 MiB of float16.
_VALUES_PER_BATCH = 2**24


def nodes_table(graph: InteractionGraph, observations: Mapping[str, Observation]) -> pa.Table:
    """Convert states and their observations to a table."""
    rows = [
        {
            "id": node.id,
            "url": node.url,
            "title": replace_surrogates(node.title),
            "structure": node.structure,
            "depth": node.depth,
            "addressable": node.addressable,
            "load_ms": node.load_ms,
            "address": node.address,
            "status": node.status,
            "waiting": node.waiting,
            "observation": _observation_row(observations[node.id]) if node.id in observations else None,
        }
        for node in _start_first(graph)
    ]
    return pa.Table.from_pylist(rows, schema=NODE_SCHEMA)


def _start_first(graph: InteractionGraph) -> Iterator[Node]:
    # The first node of a graph is its start.
    yield from sorted(graph.nodes.values(), key=lambda node: node.id != graph.start)


def _observation_row(observation: Observation) -> dict[str, Any]:
    return {
        "url": observation.url,
        "title": replace_surrogates(observation.title),
        "screenshot": observation.screenshot,
        "dom": observation.dom,
        "aria": observation.aria,
        "segments": [
            {
                "text": replace_surrogates(segment.text),
                "role": segment.role,
                "x": segment.box.x,
                "y": segment.box.y,
                "width": segment.box.width,
                "height": segment.box.height,
            }
            for segment in observation.segments
        ],
    }


def edges_table(graph: InteractionGraph) -> pa.Table:
    """Convert all edges, inherited ones included, to a table."""
    rows = [
        {
            "source": edge.source,
            "target": edge.target,
            "action": _action_row(edge.action),
            "cost_ms": edge.cost_ms,
            "inherited": edge.inherited,
            "openers": [_action_row(opener) for opener in edge.openers],
            "opens_tab": edge.opens_tab,
            "blocked": [{"method": r.method, "url": r.url, "kind": r.kind} for r in edge.blocked],
            "dialogs": [replace_surrogates(dialog) for dialog in edge.dialogs],
        }
        for edge in graph.edges
    ]
    return pa.Table.from_pylist(rows, schema=EDGE_SCHEMA)


def _action_row(action: Action) -> dict[str, Any]:
    return {**action.to_json(), "name": replace_surrogates(action.name)}


def vector_batches(pages: Mapping[str, EncodedPage]) -> Iterator[pa.RecordBatch]:
    """Convert multi-vectors to float16, in batches of bounded size."""
    batch: list[tuple[str, EncodedPage]] = []
    size = 0
    for node_id, page in pages.items():
        batch.append((node_id, page))
        size += page.vectors.size
        if size >= _VALUES_PER_BATCH:
            yield _vector_batch(batch)
            batch, size = [], 0
    if batch:
        yield _vector_batch(batch)


def _vector_batch(pages: list[tuple[str, EncodedPage]]) -> pa.RecordBatch:
    values = np.concatenate([page.vectors.astype(np.float16).ravel() for _, page in pages])
    offsets = np.cumsum([0, *(page.vectors.size for _, page in pages)], dtype=np.int32)
    return pa.record_batch(
        [
            pa.array([node_id for node_id, _ in pages], pa.string()),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)),
            pa.array([[replace_surrogates(row) for row in page.rows] for _, page in pages], _STRINGS),
            pa.array([page.segments for _, page in pages], VECTOR_SCHEMA.field("segments").type),
        ],
        schema=VECTOR_SCHEMA,
    )


def read_nodes(table: pa.Table) -> tuple[list[Node], dict[str, Observation]]:
    """Convert a table back to states and their observations by id."""
    rows = table.select([field.name for field in NODE_SCHEMA if field.name != "structure"]).to_pylist()
    structures = _shared_strings(table.column("structure"))
    nodes = [
        Node(
            id=row["id"],
            url=row["url"],
            title=row["title"],
            structure=structure,
            depth=row["depth"],
            addressable=row["addressable"],
            load_ms=row["load_ms"],
            address=row["address"],
            status=row["status"],
            waiting=row["waiting"],
        )
        for row, structure in zip(rows, structures, strict=True)
    ]
    intern = _interning()
    observations = {
        row["id"]: _observation(row["id"], row["observation"], intern) for row in rows if row["observation"] is not None
    }
    return nodes, observations


def _interning() -> Callable[[str], str]:
    """Return a function that maps equal strings to one object, so that repeated values of a table are held once."""
    known: dict[str, str] = {}
    return lambda text: known.setdefault(text, text)


def _shared_strings(lists: pa.ChunkedArray) -> Iterator[tuple[str, ...]]:
    """Yield lists of strings as tuples. Equal strings are one object, since states share most of their elements."""
    for chunk in lists.chunks:
        coded = chunk.flatten().dictionary_encode()
        strings = coded.dictionary.to_pylist()
        elements = [strings[code] for code in coded.indices.to_pylist()]
        ends = np.cumsum([0, *chunk.value_lengths().to_pylist()])
        for start, end in pairwise(ends.tolist()):
            yield tuple(elements[start:end])


def _observation(node_id: str, row: dict[str, Any], intern: Callable[[str], str]) -> Observation:
    return Observation(
        node_id=node_id,
        url=row["url"],
        title=row["title"],
        segments=tuple(
            Segment(intern(s["text"]), intern(s["role"]), Box(s["x"], s["y"], s["width"], s["height"]))
            for s in row["segments"]
        ),
        screenshot=row["screenshot"],
        dom=row["dom"],
        aria=row["aria"],
    )


def read_edges(table: pa.Table) -> Iterator[Edge]:
    """Yield the edges of a table. Tables of earlier versions have no `openers`."""
    intern = _interning()
    actions: dict[Action, Action] = {}

    def action_of(row: Mapping[str, Any]) -> Action:
        action = Action.from_json(
            {name: intern(value) if isinstance(value, str) else value for name, value in row.items()}
        )
        # Pages with one navigation have equal actions, and all links of a menu have equal openers.
        return actions.setdefault(action, action)

    known = set(table.column_names)
    for row in table.select([name for name in EDGE_SCHEMA.names if name in known or name != "openers"]).to_pylist():
        yield Edge(
            source=intern(row["source"]),
            target=intern(row["target"]),
            action=action_of(row["action"]),
            cost_ms=row["cost_ms"],
            inherited=row["inherited"],
            openers=tuple(map(action_of, row.get("openers", ()))),
            opens_tab=row["opens_tab"],
            blocked=tuple(BlockedRequest(**request) for request in row["blocked"]),
            dialogs=tuple(row["dialogs"]),
        )


def read_pages(table: pa.Table, dim: int) -> dict[str, EncodedPage]:
    """Convert a table back to multi-vectors by state id; vectors come back as float32."""
    pages: dict[str, EncodedPage] = {}
    for batch in table.select([field.name for field in VECTOR_SCHEMA]).to_batches():
        values = batch.column("values")
        offsets = values.offsets.to_numpy()
        flat = values.values.to_numpy(zero_copy_only=True)[offsets[0] : offsets[-1]].astype(np.float32)
        offsets = offsets - offsets[0]
        columns = (batch.column(name).to_pylist() for name in ("node_id", "rows", "segments"))
        for number, (node_id, rows, segments) in enumerate(zip(*columns, strict=True)):
            vectors = flat[offsets[number] : offsets[number + 1]].reshape(-1, dim)
            pages[node_id] = EncodedPage(vectors, tuple(rows), tuple(tuple(indices) for indices in segments))
    return pages


def blobs_of_observations(observations: Iterable[Observation]) -> set[str]:
    """Return the content hashes that observations refer to."""
    return set(chain.from_iterable((o.screenshot, o.dom, o.aria) for o in observations)) - {""}


def blobs_of_nodes(nodes: pa.Table) -> set[str]:
    """Return the content hashes that the observations in a table of states refer to."""
    observations = nodes.column("observation").combine_chunks()
    found: set[str] = set()
    for name in ("screenshot", "dom", "aria"):
        found.update(pc.unique(pc.struct_field(observations, name)).to_pylist())
    return {digest for digest in found if digest}
