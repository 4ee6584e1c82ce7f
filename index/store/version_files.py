"""How is one version written to its folder, and how are its files checked when they are read?"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from index.store import tables
from index.store.commit import Commit
from index.store.draft import MapDraft
from index.store.layout import EDGES, LINEAGE, MANIFEST, NODES, RECOGNITION, VECTORS
from index.store.lineage import lineage_table
from index.store.manifest import FileEntry, Manifest, damaged
from index.store.recognition import recognition_table

if TYPE_CHECKING:
    from typing_extensions import Buffer


def write_version(files: fs.FileSystem, commit: Commit, folder: str, draft: MapDraft, number: int) -> bytes:
    """Write and persist all files of a version; returns its manifest."""
    commit.make_folder(folder)
    nodes = tables.nodes_table(draft.graph, draft.observations)
    edges = tables.edges_table(draft.graph)
    written = {
        NODES: _write_table(files, f"{folder}/{NODES}", nodes.schema, nodes.to_batches()),
        EDGES: _write_table(files, f"{folder}/{EDGES}", edges.schema, edges.to_batches()),
        VECTORS: _write_table(files, f"{folder}/{VECTORS}", tables.VECTORS, tables.vector_batches(draft.pages)),
    }
    for name, rows in ((RECOGNITION, recognition_table(draft.recognition)), (LINEAGE, lineage_table(draft.lineage))):
        if len(rows):
            written[name] = _write_table(files, f"{folder}/{name}", rows.schema, rows.to_batches())
    manifest = Manifest(
        site=draft.site,
        version=number,
        created=dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        start_url=draft.start_url,
        start_node_id=draft.graph.start or "",
        counts=draft.counts,
        capture=dict(draft.capture),
        encoder=draft.encoder,
        settings=dict(draft.settings),
        report=dict(draft.report),
        partial=draft.partial,
        files=written,
    ).to_bytes()
    commit.put(f"{folder}/{MANIFEST}", manifest)
    commit.persist(f"{folder}/{name}" for name in (*written, MANIFEST))
    return manifest


def _write_table(files: fs.FileSystem, path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> FileEntry:
    with files.open_output_stream(path) as sink:
        hashing = _Hashing(sink)
        with pq.ParquetWriter(hashing, schema, compression="zstd", compression_level=1) as writer:
            for batch in batches:
                writer.write_batch(batch)
    return FileEntry(sha256=hashing.digest.hexdigest(), bytes=hashing.size)


class _Hashing(io.RawIOBase):
    """Passes on what is written, and hashes it: what storage changes on the way is found when it is read."""

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
    """The table in a file, when it is the file that the manifest's `entry` describes (StoreError)."""
    if entry is None or hashlib.sha256(content).hexdigest() != entry.sha256:
        raise damaged(path, "its content does not match its hash")
    try:
        return pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, str(error)) from error
