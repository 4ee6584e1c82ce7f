"""Content-addressed blobs: screenshots, DOMs and accessibility snapshots in files named by their SHA-256."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator

from pyarrow import fs

from waygraph.core.errors import NotFound, StoreError
from waygraph.index.store.backends.commit import Commit
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.layout import GC_CLAIM, check_present
from waygraph.index.store.manifest import damaged_file
from waygraph.index.store.names import is_digest

_GC_POLL_SECONDS = 0.5
#: A garbage collection holds its claim for short periods; a longer one means a very slow store.
_GC_TIMEOUT_SECONDS = 600.0


class BlobStore:
    """Content-addressed blobs under `blobs/<first 2 digits>/<sha256>`. Safe to use from many processes at once.

    Storing or naming a blob updates its modification time, and a garbage collection deletes only blobs that were not
    touched recently. If a collection deletes a blob at the moment it is touched, the blob is found missing after the
    collection, and is written again.

    Parameters
    ----------
    location
        Path or URL of the store, for messages.
    files
        File system of the store.
    commit
        Commit protocol of the store.
    """

    def __init__(self, location: str, files: fs.FileSystem, commit: Commit) -> None:
        self._location = location
        self._files = files
        self._commit = commit

    def put(self, content: bytes) -> str:
        """Store `content` once and return its SHA-256 (hex). A damaged copy is replaced.

        The content is durable when this returns; its directory entry is durable once a version that names the blob is
        published.
        """
        digest = hashlib.sha256(content).hexdigest()
        while self._commit.ensure(blob_path(digest), content):
            self._wait_for_collection()
            if self.has(digest):
                break
        return digest

    def put_many(self, contents: Iterable[bytes]) -> Iterator[str]:
        """Store several blobs concurrently; yields their digests in order, see `put`."""
        return concurrent_map(self.put, contents)

    def get(self, digest: str) -> bytes:
        """Return the content of a blob.

        Parameters
        ----------
        digest
            Its SHA-256 (hex).

        Returns
        -------
        bytes
            The content.

        Raises
        ------
        NotFound
            If there is no such blob.
        StoreError
            If its content does not match its name, or it cannot be read.
        """
        content = self._read(digest) if is_digest(digest) else None
        if content is None:
            check_present(self._commit, self._location)
            raise NotFound(f"The store holds no blob '{digest}'.", hint="Index the site again.")
        if hashlib.sha256(content).hexdigest() != digest:
            raise damaged_file(blob_path(digest), "its content does not match its name", reason="checksum")
        return content

    def has(self, digest: str) -> bool:
        """Return whether there is a blob with this digest."""
        if not is_digest(digest):
            return False
        return bool(self._files.get_file_info(blob_path(digest)).type == fs.FileType.File)

    def touch(self, digests: Iterable[str]) -> list[str]:
        """Protect blobs from garbage collection until a version names them; returns the missing ones.

        Parameters
        ----------
        digests
            Digests of the blobs.

        Returns
        -------
        list of str
            Digests of which there is no blob.
        """
        wanted = list(digests)
        was_old = dict(zip(wanted, concurrent_map(self._touch_one, wanted), strict=True))
        missing = [digest for digest, old in was_old.items() if old is None]
        if any(was_old.values()):
            # A collection that found them old may delete them now.
            self._wait_for_collection()
            at_risk = [digest for digest, old in was_old.items() if old]
            exist = concurrent_map(self.has, at_risk)
            missing += [digest for digest, exists in zip(at_risk, exist, strict=True) if not exists]
        return missing

    def _touch_one(self, digest: str) -> bool | None:
        return self._commit.touch(blob_path(digest)) if is_digest(digest) else None

    def _wait_for_collection(self) -> None:
        """Wait for the end of a garbage collection that may have examined a blob before it was touched."""
        deadline = time.monotonic() + _GC_TIMEOUT_SECONDS
        while self._commit.is_claimed(GC_CLAIM):
            if time.monotonic() > deadline:
                raise StoreError("A garbage collection of the store does not end.", hint="See: waygraph gc")
            time.sleep(_GC_POLL_SECONDS)

    def _read(self, digest: str) -> bytes | None:
        with translate_errors(f"read {blob_path(digest)}"):
            return self._commit.read(blob_path(digest))


def blob_path(digest: str) -> str:
    """Return the path of a blob in the store."""
    return f"blobs/{digest[:2]}/{digest}"
