"""Where do maps live? Immutable versions of each site, published in one atomic step, beside the blobs they name."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyarrow import fs

from index.graph import InteractionGraph, Observation
from index.graph.recognition import NO_RECOGNITION
from index.store import tables
from index.store.blobs import BlobStore, blob_path
from index.store.commit import Commit, Lease
from index.store.draft import MapDraft, MapVersion, blobs_of_report
from index.store.feedback import FeedbackLog, FeedbackNotes, FeedbackObjects
from index.store.layout import (
    HEAD,
    LINEAGE,
    MANIFEST,
    MARKER,
    NODES,
    RECOGNITION,
    TABLES,
    check_marker,
    claim_path,
    explained,
    head_path,
    marker_content,
    version_folder,
)
from index.store.lineage import read_lineage
from index.store.local import LocalCommit
from index.store.lost_heads import finished, head_of, lost
from index.store.manifest import Head, Manifest, checked_site_key, damaged, is_site_key
from index.store.places import place_of
from index.store.recognition import read_recognition
from index.store.version_files import parse_table, write_version
from waygraph.errors import InvalidInput, NoStore, NotFound, PublishConflict, StoreError

log = logging.getLogger(__name__)

_CHUNK_BYTES = 2**20
_RUN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_PUBLISH_ATTEMPTS = 100
#: Sites that a message names when it says which there are.
_NAMED_SITES = 20


class Store:
    """A place of maps: `sites/<site-key>/versions/<n>/`, `sites/<site-key>/HEAD`, `blobs/`, `runs/`.

    A version is written completely and made durable under a number that its writer claimed exclusively; then one
    compare-and-swap of the site's `HEAD` publishes it. So a crash at any instant leaves the version before, and two
    writers of one site never mix: whoever comes second publishes the version after. What a crashed writer left behind
    is in no `HEAD`, hence invisible, and is deleted by the next writer of that site.

    Reading goes through `pyarrow.fs`, the few guarantees of writing through `Commit`. Safe to use from many threads and
    processes.

    Attributes
    ----------
    location : a path or URL, for people.
    files, commit : for what looks after whole stores (`gc`, `checks`, `copying`); paths are relative to the store.

    """

    def __init__(self, location: str, files: fs.FileSystem, commit: Commit) -> None:
        self.location = location
        self.files = files
        self.commit = commit
        self.blobs = BlobStore(files, commit)

    @classmethod
    def open(cls, location: str, *, create: bool = False) -> Self:
        """Open the store at a local path, a `file://` or an `s3://bucket/prefix` URL.

        With `create`, a place that is missing or empty becomes a store, and it must be writable. A bucket is not made.

        Raises
        ------
        StoreError
            When there is no store (and none may be created), the folder holds something else, is not writable, or was
            written by a newer schema.

        """
        place = place_of(location)
        store = cls(place.location, place.files, place.commit)
        with explained(f"open the store {store.location}"):
            if create:
                place.commit.make_root()
            marker = store._read_marker()
            if marker is None and create:
                # When another process is faster, its marker serves as well as ours.
                place.commit.create(MARKER, marker_content())
                marker = store._read_marker()
            if marker is None:
                raise NoStore(
                    f"There is no store in {store.location}.", hint="Check the path, or make a map: waygraph index."
                )
            if create:
                place.commit.check_writable(MARKER)
        return store

    def _read_marker(self) -> bytes | None:
        """The marker; None when the folder is missing or empty."""
        content = self._read(MARKER)
        if content is None:
            selector = fs.FileSelector("", allow_not_found=True)
            # What a file system makes itself, file managers leave, and a process that is about to link its marker.
            others = [entry for entry in self.files.get_file_info(selector) if not _is_furniture(entry.base_name)]
            if others and (content := self._read(MARKER)) is None:
                raise StoreError(
                    f"{self.location} is not empty and not a waygraph store.",
                    hint="Choose an empty or new folder for the store.",
                )
        if content is not None:
            check_marker(content, f"{self.location}/{MARKER}")
        return content

    @property
    def feedback(self) -> FeedbackNotes:
        """What agents reported of its maps."""
        if isinstance(self.commit, LocalCommit):
            return FeedbackLog(Path(self.location))
        return FeedbackObjects(self.location, self.files, self.commit)

    def sites(self) -> list[str]:
        """Keys of the mapped sites, sorted."""
        return sorted(self.heads())

    def heads(self, sites: Collection[str] | None = None) -> dict[str, int | None]:
        """Numbers of the current versions of all mapped sites; None: its `HEAD` is damaged, as opening it will say.

        One look at the whole store, which costs an object store a request for a thousand sites.

        Parameters
        ----------
        sites : those that are asked for; the answer may hold others too.

        """
        found: dict[str, int | None] = {}
        with explained(f"list the sites of {self.location}"):
            for site, content in self.commit.registers("sites", HEAD, sites).items():
                if not is_site_key(site):
                    continue
                try:
                    current = Head.from_bytes(content, f"{self.location}/{head_path(site)}").current
                except StoreError as error:
                    # Opening or removing it says what is wrong; the other sites are not to suffer.
                    log.warning("%s", error)
                    found[site] = None
                else:
                    if current is not None:
                        found[site] = current
        return found

    def head(self, site: str) -> int:
        """Number of the current version of a site.

        Raises
        ------
        NotFound
            When the site is not mapped.

        """
        return self._known_head(site)[0]

    def current(self, site: str) -> int | None:
        """Number of the current version of a site; None when it is not mapped. Other sites are not looked at."""
        checked_site_key(site)
        return self._head(site)[1].current

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
            lineage = read_lineage(self._read_table(manifest, LINEAGE)) if LINEAGE in manifest.files else {}
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            folder = f"{self.location}/{version_folder(site, manifest.version)}"
            raise damaged(folder, f"its tables cannot be read ({error})") from error
        return MapVersion(manifest, graph, observations, pages, recognition, lineage)

    def observations(self, site: str, version: int | None = None) -> dict[str, Observation]:
        """What the states of a version looked like, that of the start first; neither edges nor vectors are read."""
        manifest = self.manifest(site, version)
        try:
            _, observations = tables.read_nodes(self._read_table(manifest, NODES))
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            folder = f"{self.location}/{version_folder(site, manifest.version)}"
            raise damaged(folder, f"its table of states cannot be read ({error})") from error
        return observations

    def publish(self, draft: MapDraft, *, replaces: int | None = None) -> int:
        """Write `draft` as a new version of its site, make it the current one, and return its number.

        Parameters
        ----------
        replaces : the version that the draft was made from; it must still be the current one. 0: there must be none.

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
            if missing := self.blobs.keep(blobs):
                raise InvalidInput(
                    f"The map of '{draft.site}' names blob '{missing[0]}', which the store does not hold.",
                    hint="Was it collected since the exploration began? Explore it anew: waygraph index --fresh.",
                )
            self.commit.persist(map(blob_path, blobs))
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
        """Remove a site with all its versions (NotFound when there are none). Blobs stay: other sites may share them.

        Version numbers are not used again, so that a reader can tell a new map from a removed one.
        """
        with explained(f"remove '{site}' from {self.location}"):
            swapped = False
            while not swapped:
                try:
                    raw, head = self.read_head(site)
                    if head.current is None and not lost(self, site):
                        self._known_head(site)  # says which sites there are
                except StoreError:
                    # A damaged HEAD must not keep a site from being removed.
                    raw, head = self.commit.register(head_path(site)), Head()
                # Where it was lost, the folders alone tell which numbers were used.
                head = head.used_up(max(self._numbers(site, "versions"), default=0))
                swapped = self.commit.swap(head_path(site), raw, head.removed().to_bytes())
            self._delete_leftovers(site)

    def drop(self, site: str, versions: Collection[int]) -> tuple[list[int], list[int]]:
        """Remove versions of a site, but never the current one, and what crashed writers left. Blobs stay.

        Returns the numbers of both.
        """
        with explained(f"remove versions of '{site}' from {self.location}"):
            while True:
                raw, head = self._head(site)
                gone = sorted(head.versions.keys() & set(versions) - {head.current})
                if not gone or self.commit.swap(head_path(site), raw, head.without(gone).to_bytes()):
                    break
            deleted = self._delete_leftovers(site)
        return gone, [number for number in deleted if number not in gone]

    def blobs_of(self, site: str, version: int) -> set[str]:
        """Content hashes of all blobs that a version names (StoreError when that cannot be told)."""
        manifest = self.manifest(site, version)
        try:
            named = tables.blobs_in(self._read_table(manifest, NODES))
        except (pa.ArrowException, KeyError) as error:
            folder = f"{self.location}/{version_folder(site, version)}"
            raise damaged(folder, f"its table of states cannot be read ({error})") from error
        return named | blobs_of_report(manifest.report)

    def read_head(self, site: str) -> tuple[bytes | None, Head]:
        """What is published of a site, mapped or not, and the value of the register that says it."""
        checked_site_key(site)
        return self._head(site)

    def numbers(self, site: str) -> list[int]:
        """Numbers of all versions that have files, published or not, sorted."""
        return sorted(self._numbers(checked_site_key(site), "versions"))

    def claimed(self, site: str) -> list[int]:
        """Numbers of all versions that somebody claims, or claimed when it died."""
        return sorted(self._numbers(checked_site_key(site), "claims"))

    def leftovers(self, site: str) -> list[int]:
        """Numbers in no HEAD and in nobody's hands: remains of crashed writers and of removed versions, sorted."""
        numbers = {*self.claimed(site), *self.numbers(site)} - self._head(site)[1].versions.keys()
        return [number for number in sorted(numbers) if not self.commit.is_claimed(claim_path(site, number))]

    def all_sites(self) -> list[str]:
        """Keys of the mapped sites, of removed ones, and of such whose HEAD is lost, sorted; of a folder each."""
        with explained(f"list the sites of {self.location}"):
            entries = self.files.get_file_info(fs.FileSelector("sites", allow_not_found=True))
        return sorted({entry.base_name for entry in entries if is_site_key(entry.base_name)} | self.heads().keys())

    def version_files(self, site: str, version: int) -> dict[str, bytes]:
        """All files of a published version by name, checked against their hashes."""
        manifest = self.manifest(site, version)
        folder = version_folder(site, version)
        files = {MANIFEST: self._read_of(site, version, f"{folder}/{MANIFEST}")}
        for name, entry in manifest.files.items():
            content = self._read_of(site, version, f"{folder}/{name}")
            if hashlib.sha256(content).hexdigest() != entry.sha256:
                raise damaged(f"{self.location}/{folder}/{name}", "its content does not match its hash")
            files[name] = content
        return files

    def write_version_files(self, site: str, version: int, files: Mapping[str, bytes]) -> None:
        """Write the files of a version durably, whose number is the caller's (by its claim, or since it mends it)."""
        folder = version_folder(site, version)
        # The manifest comes last: where it is, the others are.
        for name in sorted(files, key=lambda name: name == MANIFEST):
            self.commit.put(f"{folder}/{name}", files[name])
        self.commit.persist(f"{folder}/{name}" for name in files)

    def holds(self, path: str) -> bool:
        """Whether there is a file."""
        with explained(f"look for {self.location}/{path}"):
            return bool(self.files.get_file_info(path).type == fs.FileType.File)

    def read_file(self, path: str) -> bytes | None:
        """A file of the store as it is, unchecked; None when there is none."""
        return self._read(path)

    def write_run(self, run_id: str, name: str, content: bytes) -> str:
        """Store a file of a run (a report, a journal) durably, replacing an earlier one; returns its path."""
        path = _run_path(run_id, name)
        with explained(f"write {self.location}/{path}"):
            self.commit.put(path, content)
            self.commit.persist([path])
        return f"{self.location}/{path}"

    def write_run_stream(self, run_id: str, name: str, chunks: Iterable[bytes]) -> str:
        """The same for a file that need not be in memory as a whole."""
        path = _run_path(run_id, name)
        with explained(f"write {self.location}/{path}"):
            self.commit.put_stream(path, chunks)
            self.commit.persist([path])
        return f"{self.location}/{path}"

    def runs(self) -> list[str]:
        """Names of the folders in which runs left something, sorted; other folders beside them too."""
        with explained(f"list the runs of {self.location}"):
            entries = self.files.get_file_info(fs.FileSelector("runs", allow_not_found=True))
        return sorted(entry.base_name for entry in entries if entry.type == fs.FileType.Directory)

    def read_run_stream(self, run_id: str, name: str) -> Iterator[bytes]:
        """What `write_run` stored, in chunks (NotFound)."""
        path = _run_path(run_id, name)
        with explained(f"read {self.location}/{path}"):
            try:
                with self.files.open_input_stream(path) as file:
                    while chunk := bytes(file.read(_CHUNK_BYTES)):
                        yield chunk
            except (FileNotFoundError, NotADirectoryError) as error:
                raise NotFound(f"There is no {self.location}/{path}.", hint="See: waygraph runs") from error

    def read_run(self, run_id: str, name: str) -> bytes:
        """What `write_run` stored (NotFound)."""
        path = _run_path(run_id, name)
        if (content := self._read(path)) is None:
            raise NotFound(f"There is no {self.location}/{path}.", hint="Look into the store's runs.")
        return content

    def _head(self, site: str) -> tuple[bytes | None, Head]:
        path = head_path(site)
        with explained(f"read {self.location}/{path}"):
            content = self.commit.register(path)
        return content, Head() if content is None else Head.from_bytes(content, f"{self.location}/{path}")

    def _known_head(self, site: str) -> tuple[int, Head]:
        checked_site_key(site)
        _, head = self._head(site)
        if head.current is None:
            mapped = self.sites()
            known = ", ".join(mapped[:_NAMED_SITES]) or "none yet"
            more = f" and {len(mapped) - _NAMED_SITES} more" if len(mapped) > _NAMED_SITES else ""
            raise NotFound(f"Site '{site}' is not mapped in {self.location}.", hint=f"Mapped sites: {known}{more}.")
        return head.current, head

    def _claim_number(self, site: str) -> tuple[int, Lease]:
        number = max([self._head(site)[1].last, *self._numbers(site, "versions"), *self._numbers(site, "claims")])
        while True:
            number += 1
            if lease := self.commit.claim(claim_path(site, number)):
                # Since the numbers were listed, another writer may have published this one and released its claim.
                if self._head(site)[1].last < number and number not in self._numbers(site, "versions"):
                    return number, lease
                lease.release()

    def _numbers(self, site: str, folder: str) -> list[int]:
        entries = self.files.get_file_info(fs.FileSelector(f"sites/{site}/{folder}", allow_not_found=True))
        return [int(entry.base_name) for entry in entries if entry.base_name.isdecimal()]

    def _write_version(self, draft: MapDraft, number: int) -> bytes:
        return write_version(self.files, self.commit, version_folder(draft.site, number), draft, number)

    def _move_head(self, site: str, number: int, manifest_sha256: str, replaces: int | None) -> bool:
        """Publish a durable version; False when a higher number was published meanwhile."""
        while True:
            raw, head = self._head(site)
            found = head.current or 0
            # Before the first number there is nothing. Whether there is a HEAD by now, the swap finds out.
            if raw is None and number > 1 and (numbers := finished(self, site)):
                # They would count as leftovers of dead writers, once there is a HEAD again.
                head = head_of(self, site, numbers)
                log.warning("'%s' had no HEAD; its versions are named again: %s", site, sorted(head.versions))
            if replaces not in {None, found, head.current}:
                raise PublishConflict(
                    f"'{site}' has another current version by now: {head.current or 'none'}, not {replaces or 'none'}.",
                    hint="Start again from the current version.",
                )
            if head.last >= number:
                return False
            if self.commit.swap(head_path(site), raw, head.with_version(number, manifest_sha256).to_bytes()):
                return True

    def _delete_leftovers(self, site: str) -> list[int]:
        """Delete what is in no HEAD and in nobody's hands, and return the numbers."""
        claims = set(self._numbers(site, "claims"))
        published = self._head(site)[1].versions
        deleted = []
        for number in sorted(claims | set(self._numbers(site, "versions")) - set(published)):
            path = claim_path(site, number)
            lease = self.commit.take_over(path) if number in claims else self.commit.claim(path)
            if lease is None:
                continue
            try:
                if self._use_up(site, number):
                    self.commit.remove_folder(version_folder(site, number))
                    deleted.append(number)
            finally:
                lease.release()
        return deleted

    def _use_up(self, site: str, number: int) -> bool:
        """See to it that a number will never be published; False when it was.

        A writer that an object store takes for dead, since it was suspended for long, finds its number used up.
        """
        while True:
            raw, head = self._head(site)
            if number in head.versions:
                return False
            if head.last >= number or self.commit.swap(head_path(site), raw, head.used_up(number).to_bytes()):
                return True

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
                with self.files.open_input_file(path) as file:
                    return bytes(file.read())
            except (FileNotFoundError, NotADirectoryError):
                return None


def _is_furniture(name: str) -> bool:
    return name == "lost+found" or name.startswith(".")


def _run_path(run_id: str, name: str) -> str:
    for part in (run_id, name):
        if not _RUN_NAME.fullmatch(part):
            raise InvalidInput(f"'{part}' cannot name a run or its file.", hint="Use letters, digits, '.', '_', '-'.")
    return f"runs/{run_id}/{name}"
