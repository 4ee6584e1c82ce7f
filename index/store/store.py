"""Where do maps live? Immutable versions of each site, published in one atomic step, beside the blobs they name."""

from __future__ import annotations

import datetime as dt
import errno
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from index.graph import InteractionGraph
from index.store import tables
from index.store.blobs import BlobStore, blob_path
from index.store.commit import Commit, Lease, LocalCommit
from index.store.draft import MapDraft, MapVersion
from index.store.manifest import SCHEMA, FileEntry, Head, Manifest, check_schema, checked_site_key, damaged, is_site_key
from waygraph.errors import InvalidInput, NotFound, PublishConflict, StoreError

log = logging.getLogger(__name__)

_MARKER, _MARKER_FORMAT = "store.json", "waygraph-store"
_NODES, _EDGES, _VECTORS, _MANIFEST = "nodes.parquet", "edges.parquet", "vectors.parquet", "manifest.json"
_TABLES = (_NODES, _EDGES, _VECTORS)
_RUN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_PUBLISH_ATTEMPTS = 100


class Store:
    """A folder of maps: `sites/<site-key>/versions/<n>/`, `sites/<site-key>/HEAD`, `blobs/`, `runs/`.

    A version is written completely and made durable under a number that its writer claimed exclusively; then one
    compare-and-swap of the site's `HEAD` publishes it. So a crash at any instant leaves the version before, and two
    writers of one site never mix: whoever comes second publishes the version after. What a crashed writer left behind
    is in no `HEAD`, hence invisible, and is deleted by the next writer of that site.

    Reading goes through `pyarrow.fs`, the few guarantees of writing through `Commit`. Safe to use from many threads and
    processes.
    """

    def __init__(self, location: str, files: fs.FileSystem, commit: Commit) -> None:
        self.location = location
        self._files = files
        self._commit = commit
        self.blobs = BlobStore(files, commit)

    @classmethod
    def open(cls, location: str, *, create: bool = False) -> Self:
        """Open the store at a local path or `file://` URL.

        With `create`, a folder that is missing or empty becomes a store, and the folder must be writable.

        Raises
        ------
        StoreError
            When there is no store (and none may be created), the folder holds something else, is not writable, or was
            written by a newer schema.

        """
        root = _local_path(location)
        with _explained(f"open the store {root}"):
            commit = LocalCommit(root)
            store = cls(str(root), fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), commit)
            if create:
                commit.make_root()
            marker = store._read_marker()
            if marker is None and create:
                # When another process is faster, its marker serves as well as ours.
                store._commit.swap(_MARKER, None, _marker())
                marker = store._read_marker()
            if marker is None:
                raise StoreError(f"There is no store in {root}.", hint="Check the path, or make a map: waygraph index.")
            if create and not os.access(root, os.W_OK | os.X_OK):
                raise StoreError(f"The store {root} is not writable.", hint="Change its permissions or use another.")
        return store

    def _read_marker(self) -> bytes | None:
        """The marker; None when the folder is missing or empty."""
        content = self._read(_MARKER)
        if content is None:
            selector = fs.FileSelector(".", allow_not_found=True)
            # A store in the making: another process is about to link its marker.
            others = [e for e in self._files.get_file_info(selector) if not e.base_name.startswith(f".{_MARKER}.")]
            if others and (content := self._read(_MARKER)) is None:
                raise StoreError(
                    f"{self.location} is not empty and not a waygraph store.",
                    hint="Choose an empty or new folder for the store.",
                )
        if content is not None:
            _check_marker(content, f"{self.location}/{_MARKER}")
        return content

    def sites(self) -> list[str]:
        """Keys of the mapped sites, sorted."""
        with _explained(f"list the sites of {self.location}"):
            entries = self._files.get_file_info(fs.FileSelector("sites", allow_not_found=True))
            names = sorted(entry.base_name for entry in entries if is_site_key(entry.base_name))
            return [name for name in names if self._is_mapped(name)]

    def head(self, site: str) -> int:
        """Number of the current version of a site.

        Raises
        ------
        NotFound
            When the site is not mapped.

        """
        return self._known_head(site)[0]

    def versions(self, site: str) -> list[int]:
        """Numbers of all published versions of a site, oldest first."""
        return sorted(self._known_head(site)[1].versions)

    def manifest(self, site: str, version: int | None = None) -> Manifest:
        """The manifest of a version (None: the current one), checked against its hash."""
        current, head = self._known_head(site)
        number = current if version is None else version
        if number not in head.versions:
            known = ", ".join(map(str, sorted(head.versions)))
            raise NotFound(f"'{site}' has no version {number}.", hint=f"Published versions: {known}.")
        path = f"{_version_folder(site, number)}/{_MANIFEST}"
        content = self._read_of(site, number, path)
        if hashlib.sha256(content).hexdigest() != head.versions[number]:
            raise damaged(f"{self.location}/{path}", "its content does not match its hash")
        return Manifest.from_bytes(content, f"{self.location}/{path}")

    def read(self, site: str, version: int | None = None) -> MapVersion:
        """A version (None: the current one) with its states, edges and vectors, every file checked against its hash."""
        manifest = self.manifest(site, version)
        nodes, edges, vectors = (self._read_table(manifest, name) for name in _TABLES)
        try:
            states, observations = tables.read_nodes(nodes)
            graph = InteractionGraph(states, tables.read_edges(edges))
            pages = tables.read_pages(vectors, manifest.encoder.dim)
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            folder = f"{self.location}/{_version_folder(site, manifest.version)}"
            raise damaged(folder, f"its tables cannot be read ({error})") from error
        return MapVersion(manifest, graph, observations, pages)

    def publish(self, draft: MapDraft) -> int:
        """Write `draft` as a new version of its site, make it the current one, and return its number.

        Raises
        ------
        InvalidInput
            When the draft could not be read back, or names blobs that the store does not hold.
        StoreError
            When writing fails (disk full, no permission). The current version stays what it was.

        """
        draft.check()
        with _explained(f"publish '{draft.site}' in {self.location}"):
            blobs = sorted(tables.blobs_named_by(draft.observations.values()))
            if missing := [digest for digest in blobs if not self.blobs.has(digest)]:
                raise InvalidInput(
                    f"The map of '{draft.site}' names blob '{missing[0]}', which the store does not hold."
                )
            self._commit.persist(map(blob_path, blobs))
            for _ in range(_PUBLISH_ATTEMPTS):
                number, lease = self._claim_number(draft.site)
                try:
                    manifest = self._write_version(draft, number)
                    published = self._move_head(draft.site, number, hashlib.sha256(manifest).hexdigest())
                finally:
                    lease.release()
                self._delete_leftovers(draft.site)
                if published:
                    return number
        raise PublishConflict(
            f"Other writers published '{draft.site}' first, {_PUBLISH_ATTEMPTS} times in a row.",
            hint="Index a site with one job at a time.",
        )

    def remove(self, site: str) -> None:
        """Remove a site with all its versions (NotFound when it is not mapped). Blobs stay: other sites may share them.

        Version numbers are not used again, so that a reader can tell a new map from a removed one.
        """
        with _explained(f"remove '{site}' from {self.location}"):
            swapped = False
            while not swapped:
                try:
                    self._known_head(site)
                    raw, head = self._head(site)
                except StoreError:
                    # A damaged HEAD must not keep a site from being removed; the folders tell which numbers were used.
                    raw, head = self._read(_head_path(site)), Head(last=max(self._numbers(site, "versions"), default=0))
                swapped = self._commit.swap(_head_path(site), raw, head.removed().to_bytes())
            self._delete_leftovers(site)

    def write_run(self, run_id: str, name: str, content: bytes) -> str:
        """Store a file of a run (a report, a journal) durably, replacing an earlier one; returns its path."""
        for part in (run_id, name):
            if not _RUN_NAME.fullmatch(part):
                raise InvalidInput(
                    f"'{part}' cannot name a run or its file.", hint="Use letters, digits, '.', '_', '-'."
                )
        path = f"runs/{run_id}/{name}"
        with _explained(f"write {self.location}/{path}"):
            self._commit.put(path, content)
            self._commit.persist([path])
        return f"{self.location}/{path}"

    def _is_mapped(self, site: str) -> bool:
        try:
            return self._head(site)[1].current is not None
        except StoreError as error:
            # It is there, and opening or removing it says what is wrong; the other sites are not to suffer.
            log.warning("%s", error)
            return True

    def _head(self, site: str) -> tuple[bytes | None, Head]:
        path = _head_path(site)
        content = self._read(path)
        return content, Head() if content is None else Head.from_bytes(content, f"{self.location}/{path}")

    def _known_head(self, site: str) -> tuple[int, Head]:
        checked_site_key(site)
        _, head = self._head(site)
        if head.current is None:
            known = ", ".join(self.sites()) or "none yet"
            raise NotFound(f"Site '{site}' is not mapped in {self.location}.", hint=f"Mapped sites: {known}.")
        return head.current, head

    def _claim_number(self, site: str) -> tuple[int, Lease]:
        number = max([self._head(site)[1].last, *self._numbers(site, "versions"), *self._numbers(site, "claims")])
        while True:
            number += 1
            if lease := self._commit.claim(_claim_path(site, number)):
                # Since the numbers were listed, another writer may have published this one and released its claim.
                if self._head(site)[1].last < number and number not in self._numbers(site, "versions"):
                    return number, lease
                lease.release()

    def _numbers(self, site: str, folder: str) -> list[int]:
        entries = self._files.get_file_info(fs.FileSelector(f"sites/{site}/{folder}", allow_not_found=True))
        return [int(entry.base_name) for entry in entries if entry.base_name.isdecimal()]

    def _write_version(self, draft: MapDraft, number: int) -> bytes:
        """Write and persist all files of a version; returns its manifest."""
        folder = _version_folder(draft.site, number)
        self._files.create_dir(folder, recursive=True)
        nodes = tables.nodes_table(draft.graph, draft.observations)
        edges = tables.edges_table(draft.graph)
        files = {
            _NODES: self._write_table(f"{folder}/{_NODES}", nodes.schema, nodes.to_batches()),
            _EDGES: self._write_table(f"{folder}/{_EDGES}", edges.schema, edges.to_batches()),
            _VECTORS: self._write_table(f"{folder}/{_VECTORS}", tables.VECTORS, tables.vector_batches(draft.pages)),
        }
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
            files=files,
        ).to_bytes()
        self._commit.put(f"{folder}/{_MANIFEST}", manifest)
        self._commit.persist(f"{folder}/{name}" for name in (*_TABLES, _MANIFEST))
        return manifest

    def _write_table(self, path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> FileEntry:
        with (
            self._files.open_output_stream(path) as sink,
            pq.ParquetWriter(sink, schema, compression="zstd", compression_level=1) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        digest, size = hashlib.sha256(), 0
        with self._files.open_input_stream(path) as written:
            while chunk := written.read(2**20):
                digest.update(chunk)
                size += len(chunk)
        return FileEntry(sha256=digest.hexdigest(), bytes=size)

    def _move_head(self, site: str, number: int, manifest_sha256: str) -> bool:
        """Publish a durable version; False when a higher number was published meanwhile."""
        while True:
            raw, head = self._head(site)
            if head.last >= number:
                return False
            if self._commit.swap(_head_path(site), raw, head.with_version(number, manifest_sha256).to_bytes()):
                return True

    def _delete_leftovers(self, site: str) -> None:
        """Delete what is in no HEAD and in nobody's hands: remains of crashed writers and of removed versions."""
        claims = set(self._numbers(site, "claims"))
        published = self._head(site)[1].versions
        for number in sorted(claims | set(self._numbers(site, "versions")) - set(published)):
            path = _claim_path(site, number)
            lease = self._commit.take_over(path) if number in claims else self._commit.claim(path)
            if lease is None:
                continue
            try:
                # Read anew: its writer may have published it just before the claim was ours.
                folder = _version_folder(site, number)
                unpublished = number not in self._head(site)[1].versions
                if unpublished and self._files.get_file_info(folder).type == fs.FileType.Directory:
                    self._files.delete_dir(folder)
            finally:
                lease.release()

    def _read_table(self, manifest: Manifest, name: str) -> pa.Table:
        path = f"{_version_folder(manifest.site, manifest.version)}/{name}"
        content = self._read_of(manifest.site, manifest.version, path)
        entry = manifest.files.get(name)
        if entry is None or hashlib.sha256(content).hexdigest() != entry.sha256:
            raise damaged(f"{self.location}/{path}", "its content does not match its hash")
        try:
            return pq.read_table(pa.BufferReader(content))
        except (pa.ArrowException, OSError) as error:
            raise damaged(f"{self.location}/{path}", str(error)) from error

    def _read_of(self, site: str, version: int, path: str) -> bytes:
        """A file of a published version."""
        content = self._read(path)
        if content is None:
            if version not in self._head(site)[1].versions:
                raise NotFound(f"Version {version} of '{site}' was removed meanwhile.", hint="Open the site again.")
            raise damaged(f"{self.location}/{path}", "it is missing")
        return content

    def _read(self, path: str) -> bytes | None:
        """A whole file; None when there is none."""
        with _explained(f"read {self.location}/{path}"):
            try:
                with self._files.open_input_file(path) as file:
                    return bytes(file.read())
            except (FileNotFoundError, NotADirectoryError):
                return None


def _local_path(location: str) -> Path:
    parts = urlsplit(location)
    if "://" not in location:
        return Path(location).expanduser().absolute()
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        raise StoreError(f"Stores at {parts.scheme}:// are not supported yet.", hint="Use a local folder.")
    return Path(unquote(parts.path))


def _marker() -> bytes:
    return f"{json.dumps({'format': _MARKER_FORMAT, 'schema': SCHEMA})}\n".encode()


def _check_marker(content: bytes, path: str) -> None:
    try:
        marker = json.loads(content)
        is_ours = isinstance(marker, dict) and marker.get("format") == _MARKER_FORMAT
        if is_ours:
            check_schema(marker, path)
    except (ValueError, TypeError) as error:
        raise damaged(path, str(error)) from error
    if not is_ours:
        raise StoreError(f"{path} is not the marker of a waygraph store.", hint="Choose another folder for the store.")


def _head_path(site: str) -> str:
    return f"sites/{checked_site_key(site)}/HEAD"


def _claim_path(site: str, number: int) -> str:
    return f"sites/{checked_site_key(site)}/claims/{number}"


def _version_folder(site: str, number: int) -> str:
    return f"sites/{checked_site_key(site)}/versions/{number}"


_HINTS = {
    errno.EACCES: "Change its permissions or use another folder.",
    errno.EPERM: "Change its permissions or use another folder.",
    errno.EROFS: "Its file system is mounted read-only: use another folder.",
    errno.ENOSPC: "The disk is full: make room and run the command again.",
    errno.EDQUOT: "The quota is used up: make room and run the command again.",
    errno.ENOTDIR: "Part of the path is a file: use another folder.",
    errno.EEXIST: "Part of the path is a file: use another folder.",
}


@contextmanager
def _explained(doing: str) -> Iterator[None]:
    """Turn failures of the disk into StoreErrors that say what was being done."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "Check the folder and the disk.")
        raise StoreError(f"Cannot {doing}: {error.strerror or error}.", hint=hint) from error
