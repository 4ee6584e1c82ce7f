"""How are graphs, observations and vectors written as tables? Pure conversions to and from Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from index.graph import Action, BlockedRequest, Box, Edge, InteractionGraph, Node, Observation, Segment
from index.vectors.multivector import EncodedPage
from waygraph.spelling import spellable

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
#: One row per state, the start state first; `observation` is null when there is none.
NODES = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("title", pa.string()),
        ("structure", _STRINGS),
        ("depth", pa.int32()),
        ("addressable", pa.bool_()),
        ("load_ms", pa.float64()),
        ("observation", _OBSERVATION),
    ]
)
_ACTION = pa.struct(
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
EDGES = pa.schema(
    [
        ("source", pa.string()),
        ("target", pa.string()),
        ("action", _ACTION),
        ("cost_ms", pa.float64()),
        ("inherited", pa.bool_()),
        ("opens_tab", pa.bool_()),
        ("blocked", pa.list_(pa.struct([("method", pa.string()), ("url", pa.string()), ("kind", pa.string())]))),
        ("dialogs", _STRINGS),
    ]
)
#: One row per encoded state; `values` are the rows of its matrix behind one another, `dim` is in the manifest.
VECTORS = pa.schema(
    [
        ("node_id", pa.string()),
        ("values", pa.list_(pa.float16())),
        ("rows", _STRINGS),
        ("segments", pa.list_(pa.list_(pa.int32()))),
    ]
)

#: Values per batch of vectors: 32 MiB of float16.
_VALUES_PER_BATCH = 2**24


def nodes_table(graph: InteractionGraph, observations: Mapping[str, Observation]) -> pa.Table:
    """States and what they looked like."""
    rows = [
        {
            "id": node.id,
            "url": node.url,
            "title": spellable(node.title),
            "structure": node.structure,
            "depth": node.depth,
            "addressable": node.addressable,
            "load_ms": node.load_ms,
            "observation": _observation_row(observations[node.id]) if node.id in observations else None,
        }
        for node in _start_first(graph)
    ]
    return pa.Table.from_pylist(rows, schema=NODES)


def _start_first(graph: InteractionGraph) -> Iterator[Node]:
    # The first node of a graph is its start.
    yield from sorted(graph.nodes.values(), key=lambda node: node.id != graph.start)


def _observation_row(seen: Observation) -> dict[str, Any]:
    return {
        "url": seen.url,
        "title": spellable(seen.title),
        "screenshot": seen.screenshot,
        "dom": seen.dom,
        "aria": seen.aria,
        "segments": [
            {
                "text": spellable(segment.text),
                "role": segment.role,
                "x": segment.box.x,
                "y": segment.box.y,
                "width": segment.box.width,
                "height": segment.box.height,
            }
            for segment in seen.segments
        ],
    }


def edges_table(graph: InteractionGraph) -> pa.Table:
    """All edges, inherited ones included."""
    rows = [
        {
            "source": edge.source,
            "target": edge.target,
            "action": {**edge.action.to_json(), "name": spellable(edge.action.name)},
            "cost_ms": edge.cost_ms,
            "inherited": edge.inherited,
            "opens_tab": edge.opens_tab,
            "blocked": [{"method": r.method, "url": r.url, "kind": r.kind} for r in edge.blocked],
            "dialogs": [spellable(dialog) for dialog in edge.dialogs],
        }
        for edge in graph.edges
    ]
    return pa.Table.from_pylist(rows, schema=EDGES)


def vector_batches(pages: Mapping[str, EncodedPage]) -> Iterator[pa.RecordBatch]:
    """Multi-vectors as float16, in batches of bounded size."""
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
            pa.array([[spellable(row) for row in page.rows] for _, page in pages], _STRINGS),
            pa.array([page.segments for _, page in pages], VECTORS.field("segments").type),
        ],
        schema=VECTORS,
    )


def read_nodes(table: pa.Table) -> tuple[list[Node], dict[str, Observation]]:
    """Inverse of `nodes_table`."""
    rows = table.select([field.name for field in NODES if field.name != "structure"]).to_pylist()
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
        )
        for row, structure in zip(rows, structures, strict=True)
    ]
    one = _each_once()
    seen = {
        row["id"]: _observation(row["id"], row["observation"], one) for row in rows if row["observation"] is not None
    }
    return nodes, seen


def _each_once() -> Callable[[str], str]:
    """Gives for equal strings one object: what a table says a thousand times is held once."""
    known: dict[str, str] = {}
    return lambda text: known.setdefault(text, text)


def _shared_strings(lists: pa.ChunkedArray) -> Iterator[tuple[str, ...]]:
    """Lists of strings as tuples, with equal strings being one object: states share most of their elements."""
    for chunk in lists.chunks:
        coded = chunk.flatten().dictionary_encode()
        strings = coded.dictionary.to_pylist()
        elements = [strings[code] for code in coded.indices.to_pylist()]
        ends = np.cumsum([0, *chunk.value_lengths().to_pylist()])
        for start, end in pairwise(ends.tolist()):
            yield tuple(elements[start:end])


def _observation(node_id: str, row: dict[str, Any], one: Callable[[str], str]) -> Observation:
    return Observation(
        node_id=node_id,
        url=row["url"],
        title=row["title"],
        segments=tuple(
            Segment(one(s["text"]), one(s["role"]), Box(s["x"], s["y"], s["width"], s["height"]))
            for s in row["segments"]
        ),
        screenshot=row["screenshot"],
        dom=row["dom"],
        aria=row["aria"],
    )


def read_edges(table: pa.Table) -> Iterator[Edge]:
    """Inverse of `edges_table`."""
    one = _each_once()
    for row in table.select([field.name for field in EDGES]).to_pylist():
        action = {name: one(value) if isinstance(value, str) else value for name, value in row["action"].items()}
        yield Edge(
            source=one(row["source"]),
            target=one(row["target"]),
            action=Action.from_json(action),
            cost_ms=row["cost_ms"],
            inherited=row["inherited"],
            opens_tab=row["opens_tab"],
            blocked=tuple(BlockedRequest(**request) for request in row["blocked"]),
            dialogs=tuple(row["dialogs"]),
        )


def read_pages(table: pa.Table, dim: int) -> dict[str, EncodedPage]:
    """Inverse of `vector_batches`; vectors come back as float32."""
    pages: dict[str, EncodedPage] = {}
    for batch in table.select([field.name for field in VECTORS]).to_batches():
        values = batch.column("values")
        offsets = values.offsets.to_numpy()
        flat = values.values.to_numpy(zero_copy_only=True)[offsets[0] : offsets[-1]].astype(np.float32)
        offsets = offsets - offsets[0]
        columns = (batch.column(name).to_pylist() for name in ("node_id", "rows", "segments"))
        for number, (node_id, rows, segments) in enumerate(zip(*columns, strict=True)):
            vectors = flat[offsets[number] : offsets[number + 1]].reshape(-1, dim)
            pages[node_id] = EncodedPage(vectors, tuple(rows), tuple(tuple(indices) for indices in segments))
    return pages


def blobs_named_by(observations: Iterable[Observation]) -> set[str]:
    """Content hashes that observations refer to."""
    return set(chain.from_iterable((o.screenshot, o.dom, o.aria) for o in observations)) - {""}


def blobs_in(nodes: pa.Table) -> set[str]:
    """The same, from a table of states."""
    seen = nodes.column("observation").combine_chunks()
    found: set[str] = set()
    for name in ("screenshot", "dom", "aria"):
        found.update(pc.unique(pc.struct_field(seen, name)).to_pylist())
    return {digest for digest in found if digest}
