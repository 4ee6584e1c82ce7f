"""Files of one version: writing them to its folder, and checking them when they are read."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from waygraph.core.errors import InvalidInput
from waygraph.index.store import table_checks as checks
from waygraph.index.store import tables
from waygraph.index.store.backends.commit import Commit
from waygraph.index.store.descriptions import descriptions_table
from waygraph.index.store.draft import MapDraft
from waygraph.index.store.layout import (
    DESCRIPTIONS_FILE,
    EDGES_FILE,
    LEAD_VECTORS_FILE,
    LEADS_FILE,
    LINEAGE_FILE,
    MANIFEST_FILE,
    NODES_FILE,
    RECOGNITION_FILE,
    TOOL_VECTORS_FILE,
    TOOLS_FILE,
    VECTORS_FILE,
)
from waygraph.index.store.leads import leads_table
from waygraph.index.store.lineage import lineage_table
from waygraph.index.store.manifest import FileEntry, Manifest, damaged_file
from waygraph.index.store.recognition import recognition_table
from waygraph.index.store.tools import tools_table

if TYPE_CHECKING:
    from typing_extensions import Buffer


def write_version(files: fs.FileSystem, commit: Commit, folder: str, draft: MapDraft, number: int) -> bytes:
    """Write and persist all files of a version, and return its manifest."""
    commit.create_folder(folder)
    nodes = tables.nodes_table(draft.graph, draft.observations)
    edges = tables.edges_table(draft.graph)
    written = {
        NODES_FILE: _write_table(files, f"{folder}/{NODES_FILE}", nodes.schema, nodes.to_batches()),
        EDGES_FILE: _write_table(files, f"{folder}/{EDGES_FILE}", edges.schema, edges.to_batches()),
    }
    for name, pages in (
        (VECTORS_FILE, draft.pages),
        (LEAD_VECTORS_FILE, draft.lead_pages),
        (TOOL_VECTORS_FILE, draft.tool_pages),
    ):
        if pages or name == VECTORS_FILE:
            written[name] = _write_table(
                files, f"{folder}/{name}", tables.VECTOR_SCHEMA, tables.vector_batches(pages), tables.VECTOR_ENCODING
            )
    recognition, lineage = recognition_table(draft.recognition), lineage_table(draft.lineage)
    leads, descriptions = leads_table(draft.leads), descriptions_table(draft.descriptions)
    offered = tools_table(draft.tools)
    for name, rows in (
        (RECOGNITION_FILE, recognition),
        (LINEAGE_FILE, lineage),
        (LEADS_FILE, leads),
        (DESCRIPTIONS_FILE, descriptions),
        (TOOLS_FILE, offered),
    ):
        if len(rows):
            written[name] = _write_table(files, f"{folder}/{name}", rows.schema, rows.to_batches())
    manifest = Manifest(
        site=draft.site,
        version=number,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        start_url=draft.start_url,
        start_node_id=draft.graph.start or "",
        title=draft.graph.nodes[draft.graph.start].title if draft.graph.start else "",
        counts=draft.counts,
        capture=dict(draft.capture),
        encoder=draft.encoder,
        settings=dict(draft.settings),
        report=dict(draft.report),
        partial=draft.partial,
        files=written,
    )
    try:
        # Else a version could be published that no reader opens. `MapDraft.check` has checked the vectors.
        states = checks.check_nodes(nodes, manifest)
        checks.check_edges(edges, manifest, states)
        checks.check_recognition(recognition, states)
        states_and_leads = pa.concat_arrays([states, checks.check_leads(leads, manifest, states)])
        checks.check_lineage(lineage, states_and_leads)
        checks.check_descriptions(descriptions, states_and_leads)
        checks.check_tools(offered, manifest, states)
    except ValueError as error:
        raise InvalidInput(f"The map of '{draft.site}' could not be read back: {error}.") from error
    content = manifest.to_bytes()
    commit.put(f"{folder}/{MANIFEST_FILE}", content)
    commit.persist(f"{folder}/{name}" for name in (*written, MANIFEST_FILE))
    return content


def _write_table(
    files: fs.FileSystem,
    path: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    encoding: Mapping[str, Any] = MappingProxyType({}),
) -> FileEntry:
    with files.open_output_stream(path) as sink:
        hashed = _HashingWriter(sink)
        with pq.ParquetWriter(hashed, schema, compression="zstd", compression_level=1, **encoding) as writer:
            for batch in batches:
                writer.write_batch(batch)
    return FileEntry(sha256=hashed.digest.hexdigest(), bytes=hashed.size)


class _HashingWriter(io.RawIOBase):
    """Writer that hashes what it passes on. A change on the way to the storage is thus found when the file is read."""

    def __init__(self, sink: pa.NativeFile) -> None:
        self._sink = sink
        self.digest = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Buffer, /) -> int:
        self._sink.write(content)
        view = memoryview(content)
        self.digest.update(view)
        self.size += view.nbytes
        return view.nbytes


def parse_table(content: bytes, entry: FileEntry | None, path: str) -> pa.Table:
    """Parse the table of a file that must match its manifest entry (StoreError)."""
    if entry is None or hashlib.sha256(content).hexdigest() != entry.sha256:
        raise damaged_file(path, "its content does not match its hash", reason="checksum")
    try:
        return pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise damaged_file(path, str(error), reason="table") from error
