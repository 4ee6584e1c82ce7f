"""Store of maps: immutable versions of each site, published in one atomic step, and the blobs that they name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from pyarrow import fs

from waygraph.core.errors import NoStore, StoreError
from waygraph.index.graph import Observation
from waygraph.index.store import reading
from waygraph.index.store.backends.commit import Commit
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.backends.local import LocalCommit
from waygraph.index.store.backends.storage_location import resolve_location
from waygraph.index.store.blobs import BlobStore
from waygraph.index.store.contents import StoreContents
from waygraph.index.store.draft import MapDraft, MapVersion
from waygraph.index.store.feedback import FeedbackLog, FeedbackObjects, FeedbackStorage
from waygraph.index.store.layout import MANIFEST_FILE, MARKER_FILE, check_marker, marker_content, version_folder
from waygraph.index.store.manifest import Manifest
from waygraph.index.store.publishing import Publisher
from waygraph.index.store.run_files import RunFiles


class Store(StoreContents):
    """A store of maps: `sites/<site-key>/versions/<n>/`, `sites/<site-key>/HEAD`, `blobs/`, `runs/`.

    A version is written completely and durably under a number that its writer claimed exclusively; then one
    compare-and-swap of the site's `HEAD` publishes it. A crash at any instant therefore leaves the previous version in
    place, and two writers of one site never mix: the second one publishes the next version. What a crashed writer left
    is in no `HEAD`, hence invisible, and the next writer of that site deletes it.

    Readers get snapshot isolation: a version never changes, and one that was read stays valid whatever is published or
    removed meanwhile. Files are read through `pyarrow.fs`; the guarantees of writing come from `Commit`. Safe to use
    from many threads and processes.

    Parameters
    ----------
    location
        Path or URL of the store, for messages.
    files
        File system; paths are relative to the store.
    commit
        Commit protocol; paths are relative to the store.
    """

    def __init__(self, location: str, files: fs.FileSystem, commit: Commit) -> None:
        super().__init__(location, files, commit)
        self.blobs = BlobStore(location, files, commit)

    @classmethod
    def open(cls, location: str, *, create: bool = False) -> Self:
        """Open the store at a local path, a `file://` URL or an `s3://bucket/prefix` URL.

        Parameters
        ----------
        location
            Path or URL.
        create
            Whether a location that is missing or empty becomes a store, and must be writable. Buckets are not created.

        Returns
        -------
        Self
            The store.

        Raises
        ------
        StoreError
            If there is no store (and none may be created), the folder belongs to another program, is not writable, or
            was written by a newer schema.
        """
        resolved = resolve_location(location)
        store = cls(resolved.location, resolved.files, resolved.commit)
        with translate_errors(f"open the store {store.location}"):
            if create:
                store.commit.create_root()
            marker = store._read_marker()
            if marker is None and create:
                # If another process creates the marker first, that one serves as well.
                store.commit.create(MARKER_FILE, marker_content())
                marker = store._read_marker()
            if marker is None:
                raise NoStore(
                    f"There is no store in {store.location}.", hint="Check the path, or make a map: waygraph index."
                )
            if create:
                store.commit.check_writable(MARKER_FILE)
        return store

    def _read_marker(self) -> bytes | None:
        """Return the checked marker; None if the folder is missing or empty."""
        content = self.read_file(MARKER_FILE)
        if content is None:
            selector = fs.FileSelector("", allow_not_found=True)
            others = [entry for entry in self.files.get_file_info(selector) if not _is_ignored(entry.base_name)]
            # Read again: another process may have created the marker since.
            if others and (content := self.read_file(MARKER_FILE)) is None:
                raise StoreError(
                    f"{self.location} is not empty and not a waygraph store.",
                    hint="Choose an empty or new folder for the store.",
                )
        if content is not None:
            check_marker(content, f"{self.location}/{MARKER_FILE}")
        return content

    @property
    def feedback(self) -> FeedbackStorage:
        """Feedback of agents on the maps of this store."""
        if isinstance(self.commit, LocalCommit):
            return FeedbackLog(Path(self.location))
        return FeedbackObjects(self.location, self.files, self.commit)

    def manifest(self, site: str, version: int | None = None) -> Manifest:
        """Read the manifest of a version (None: the current one), checked against its hash."""
        return reading.read_manifest(self, site, version)

    def read(self, site: str, version: int | None = None) -> MapVersion:
        """Read a version (None: the current one) with states, edges and vectors, all checked against their hashes."""
        return reading.read_version(self, site, version)

    def observations(self, site: str, version: int | None = None) -> dict[str, Observation]:
        """Read the observations of a version by node id, the start state first; neither edges nor vectors are read."""
        return reading.read_observations(self, site, version)

    def blobs_of(self, site: str, version: int) -> set[str]:
        """Read the content hashes of all blobs that a version names (StoreError if it is damaged)."""
        return reading.blobs_of_version(self, site, version)

    def version_files(self, site: str, version: int) -> dict[str, bytes]:
        """Read all files of a published version by name, checked against their hashes."""
        return reading.read_version_files(self, site, version)

    def write_version_files(self, site: str, version: int, files: Mapping[str, bytes]) -> None:
        """Write the files of a version durably. The caller holds the claim on its number, or repairs the version."""
        folder = version_folder(site, version)
        # The manifest comes last: if it exists, all other files do.
        for name in sorted(files, key=lambda name: name == MANIFEST_FILE):
            self.commit.put(f"{folder}/{name}", files[name])
        self.commit.persist(f"{folder}/{name}" for name in files)

    def publish(self, draft: MapDraft, *, replaces: int | None = None) -> int:
        """Write `draft` as a new version of its site, and make it the current one.

        Parameters
        ----------
        draft
            The map.
        replaces
            The version from which the draft was made; it must still be the current one. 0: there must be none. None: no
            condition.

        Returns
        -------
        int
            Number of the version.

        Raises
        ------
        InvalidInput
            If the draft could not be read back, or names blobs that the store does not hold.
        PublishConflict
            If the current version is not `replaces`.
        StoreError
            If writing fails (disk full, no permission). The current version stays as it was.
        """
        return Publisher(self, self.blobs).publish(draft, replaces)

    def remove(self, site: str) -> None:
        """Remove a site with all its versions (NotFound if there are none). Blobs stay: other sites may share them.

        Version numbers are not used again, so that a reader can distinguish a new map from the removed one.
        """
        Publisher(self, self.blobs).remove(site)

    def drop(self, site: str, versions: Collection[int]) -> tuple[list[int], list[int]]:
        """Remove versions of a site, but never the current one, and what crashed writers left. Blobs stay.

        Parameters
        ----------
        site
            Key of the site.
        versions
            Numbers of the versions.

        Returns
        -------
        tuple of list of int and list of int
            Numbers of the removed versions, and numbers that crashed writers had left.
        """
        return Publisher(self, self.blobs).drop(site, versions)

    def runs(self) -> list[str]:
        """Return the names of all folders under `runs/`, sorted: run ids, and other folders next to them."""
        return RunFiles(self).list_runs()

    def write_run(self, run_id: str, name: str, content: bytes) -> str:
        """Store a file of a run (a report, a journal) durably, replacing an earlier one; return its location."""
        return RunFiles(self).write(run_id, name, content)

    def write_run_stream(self, run_id: str, name: str, chunks: Iterable[bytes]) -> str:
        """Store a file of a run like `write_run`, without having it in memory as a whole."""
        return RunFiles(self).write_stream(run_id, name, chunks)

    def read_run(self, run_id: str, name: str) -> bytes:
        """Return a file that `write_run` stored (NotFound)."""
        return RunFiles(self).read(run_id, name)

    def read_run_stream(self, run_id: str, name: str) -> Iterator[bytes]:
        """Yield a file that `write_run` stored in chunks (NotFound)."""
        return RunFiles(self).read_stream(run_id, name)


def _is_ignored(name: str) -> bool:
    """Return whether an entry of a folder does not make it non-empty.

    File systems create `lost+found`, file managers create hidden files, and so does a process that is about to link
    its marker.
    """
    return name == "lost+found" or name.startswith(".")
