"""Where do maps live? Immutable versions of each site, published in one atomic step, beside the blobs they name."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from typing import Self

import pyarrow as pa
from pyarrow import fs

from index.graph import InteractionGraph
from index.graph.recognition import NO_RECOGNITION
from index.store import tables
from index.store.blobs import BlobStore, blob_path
from index.store.commit import Commit, Lease, LocalCommit
from index.store.draft import MapDraft, MapVersion
from index.store.layout import (
    MANIFEST,
    MARKER,
    RECOGNITION,
    TABLES,
    check_marker,
    claim_path,
    explained,
    head_path,
    local_path,
    marker_content,
    version_folder,
)
from index.store.manifest import Head, Manifest, checked_site_key, damaged, is_site_key
from index.store.recognition import read_recognition
from index.store.version_files import parse_table, write_version
from waygraph.errors import InvalidInput, NotFound, PublishConflict, StoreError

log = logging.getLogger(__name__)

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
        root = local_path(location)
        with explained(f"open the store {root}"):
            commit = LocalCommit(root)
            store = cls(str(root), fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), commit)
            if create:
                commit.make_root()
            marker = store._read_marker()
            if marker is None and create:
                # When another process is faster, its marker serves as well as ours.
                store._commit.swap(MARKER, None, marker_content())
                marker = store._read_marker()
            if marker is None:
                raise StoreError(f"There is no store in {root}.", hint="Check the path, or make a map: waygraph index.")
            if create and not os.access(root, os.W_OK | os.X_OK, effective_ids=True):
                raise StoreError(f"The store {root} is not writable.", hint="Change its permissions or use another.")
        return store

    def _read_marker(self) -> bytes | None:
        """The marker; None when the folder is missing or empty."""
        content = self._read(MARKER)
        if content is None:
            selector = fs.FileSelector(".", allow_not_found=True)
            # A store in the making: another process is about to link its marker.
            others = [e for e in self._files.get_file_info(selector) if not e.base_name.startswith(f".{MARKER}.")]
            if others and (content := self._read(MARKER)) is None:
                raise StoreError(
                    f"{self.location} is not empty and not a waygraph store.",
                    hint="Choose an empty or new folder for the store.",
                )
        if content is not None:
            check_marker(content, f"{self.location}/{MARKER}")
        return content

    def sites(self) -> list[str]:
        """Keys of the mapped sites, sorted."""
        with explained(f"list the sites of {self.location}"):
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
        path = f"{version_folder(site, number)}/{MANIFEST}"
        content = self._read_of(site, number, path)
        if hashlib.sha256(content).hexdigest() != head.versions[number]:
            raise damaged(f"{self.location}/{path}", "its content does not match its hash")
        return Manifest.from_bytes(content, f"{self.location}/{path}")

    def read(self, site: str, version: int | None = None) -> MapVersion:
        """A version (None: the current one) with its states, edges and vectors, every file checked against its hash."""
        manifest = self.manifest(site, version)
        nodes, edges, vectors = (self._read_table(manifest, name) for name in TABLES)
        try:
            states, observations = tables.read_nodes(nodes)
            graph = InteractionGraph(states, tables.read_edges(edges))
            pages = tables.read_pages(vectors, manifest.encoder.dim)
            known = RECOGNITION in manifest.files
            recognition = read_recognition(self._read_table(manifest, RECOGNITION)) if known else NO_RECOGNITION
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            folder = f"{self.location}/{version_folder(site, manifest.version)}"
            raise damaged(folder, f"its tables cannot be read ({error})") from error
        return MapVersion(manifest, graph, observations, pages, recognition)

    def publish(self, draft: MapDraft, *, replaces: int | None = None) -> int:
        """Write `draft` as a new version of its site, make it the current one, and return its number.

        Parameters
        ----------
        replaces : the version that the draft was made from; it must still be the current one.

        Raises
        ------
        InvalidInput
            When the draft could not be read back, or names blobs that the store does not hold.
        PublishConflict
            When another version than `replaces` is the current one meanwhile.
        StoreError
            When writing fails (disk full, no permission). The current version stays what it was.

        """
        draft.check()
        with explained(f"publish '{draft.site}' in {self.location}"):
            blobs = sorted(draft.blobs)
            if missing := [digest for digest in blobs if not self.blobs.has(digest)]:
                raise InvalidInput(
                    f"The map of '{draft.site}' names blob '{missing[0]}', which the store does not hold."
                )
            self._commit.persist(map(blob_path, blobs))
            for _ in range(_PUBLISH_ATTEMPTS):
                number, lease = self._claim_number(draft.site)
                try:
                    manifest = self._write_version(draft, number)
                    published = self._move_head(draft.site, number, hashlib.sha256(manifest).hexdigest(), replaces)
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
        with explained(f"remove '{site}' from {self.location}"):
            swapped = False
            while not swapped:
                try:
                    self._known_head(site)
                    raw, head = self._head(site)
                except StoreError:
                    # A damaged HEAD must not keep a site from being removed; the folders tell which numbers were used.
                    raw, head = self._read(head_path(site)), Head(last=max(self._numbers(site, "versions"), default=0))
                swapped = self._commit.swap(head_path(site), raw, head.removed().to_bytes())
            self._delete_leftovers(site)

    def write_run(self, run_id: str, name: str, content: bytes) -> str:
        """Store a file of a run (a report, a journal) durably, replacing an earlier one; returns its path."""
        for part in (run_id, name):
            if not _RUN_NAME.fullmatch(part):
                raise InvalidInput(
                    f"'{part}' cannot name a run or its file.", hint="Use letters, digits, '.', '_', '-'."
                )
        path = f"runs/{run_id}/{name}"
        with explained(f"write {self.location}/{path}"):
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
        path = head_path(site)
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
            if lease := self._commit.claim(claim_path(site, number)):
                # Since the numbers were listed, another writer may have published this one and released its claim.
                if self._head(site)[1].last < number and number not in self._numbers(site, "versions"):
                    return number, lease
                lease.release()

    def _numbers(self, site: str, folder: str) -> list[int]:
        entries = self._files.get_file_info(fs.FileSelector(f"sites/{site}/{folder}", allow_not_found=True))
        return [int(entry.base_name) for entry in entries if entry.base_name.isdecimal()]

    def _write_version(self, draft: MapDraft, number: int) -> bytes:
        return write_version(self._files, self._commit, version_folder(draft.site, number), draft, number)

    def _move_head(self, site: str, number: int, manifest_sha256: str, replaces: int | None) -> bool:
        """Publish a durable version; False when a higher number was published meanwhile."""
        while True:
            raw, head = self._head(site)
            if replaces not in {None, head.current}:
                raise PublishConflict(
                    f"Version {replaces} of '{site}' is not the current one any more; {head.current or 'none'} is.",
                    hint="Start again from the current version.",
                )
            if head.last >= number:
                return False
            if self._commit.swap(head_path(site), raw, head.with_version(number, manifest_sha256).to_bytes()):
                return True

    def _delete_leftovers(self, site: str) -> None:
        """Delete what is in no HEAD and in nobody's hands: remains of crashed writers and of removed versions."""
        claims = set(self._numbers(site, "claims"))
        published = self._head(site)[1].versions
        for number in sorted(claims | set(self._numbers(site, "versions")) - set(published)):
            path = claim_path(site, number)
            lease = self._commit.take_over(path) if number in claims else self._commit.claim(path)
            if lease is None:
                continue
            try:
                # Read anew: its writer may have published it just before the claim was ours.
                folder = version_folder(site, number)
                unpublished = number not in self._head(site)[1].versions
                if unpublished and self._files.get_file_info(folder).type == fs.FileType.Directory:
                    self._files.delete_dir(folder)
            finally:
                lease.release()

    def _read_table(self, manifest: Manifest, name: str) -> pa.Table:
        path = f"{version_folder(manifest.site, manifest.version)}/{name}"
        content = self._read_of(manifest.site, manifest.version, path)
        return parse_table(content, manifest.files.get(name), f"{self.location}/{path}")

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
        with explained(f"read {self.location}/{path}"):
            try:
                with self._files.open_input_file(path) as file:
                    return bytes(file.read())
            except (FileNotFoundError, NotADirectoryError):
                return None
