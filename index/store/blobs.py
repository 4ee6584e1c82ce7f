"""Where do screenshots, DOMs and accessibility snapshots go? Into files named by what they hold, written once."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator

from pyarrow import fs

from index.store.commit import Commit
from index.store.concurrency import concurrently
from index.store.layout import GC_CLAIM, explained
from index.store.manifest import damaged
from waygraph.errors import NotFound, StoreError

_HASH = re.compile("[0-9a-f]{64}")
_LOOK_AGAIN_SECONDS = 0.5
#: A garbage collection deletes in short turns; one that takes longer has met a very slow store.
_GC_PATIENCE_SECONDS = 600.0


class BlobStore:
    """Content-addressed blobs under `blobs/<first 2 digits>/<sha256>`. Safe to use from many processes at once.

    Whoever stores or names a blob makes it young, and a garbage collection deletes old ones only. One that is collected
    in the very moment in which it is made young is found missing when the collection has let go, and written again.
    """

    def __init__(self, files: fs.FileSystem, commit: Commit) -> None:
        self._files = files
        self._commit = commit

    def put(self, content: bytes) -> str:
        """Store `content` once and return its SHA-256 (hex). A damaged copy is replaced.

        The content is on disk when this returns; its name is, when a version that refers to it is published.
        """
        digest = hashlib.sha256(content).hexdigest()
        while self._commit.keep(blob_path(digest), content):
            self._outwait_collection()
            if self.has(digest):
                break
        return digest

    def put_many(self, contents: Iterable[bytes]) -> Iterator[str]:
        """`put` for many, several at a time, in their order."""
        return concurrently(self.put, contents)

    def get(self, digest: str) -> bytes:
        """The content of a blob.

        Raises
        ------
        NotFound
            When there is no such blob.
        StoreError
            When its content is not what its name says, or it cannot be read.

        """
        content = self._read(digest) if is_digest(digest) else None
        if content is None:
            raise NotFound(f"The store holds no blob '{digest}'.", hint="Index the site again.")
        if hashlib.sha256(content).hexdigest() != digest:
            raise damaged(blob_path(digest), "its content does not match its name")
        return content

    def has(self, digest: str) -> bool:
        """Whether there is a blob of that name."""
        if not is_digest(digest):
            return False
        return bool(self._files.get_file_info(blob_path(digest)).type == fs.FileType.File)

    def keep(self, digests: Iterable[str]) -> list[str]:
        """Make blobs young, so that no garbage collection takes them before they are named; returns those missing."""
        named = list(digests)
        touched = zip(named, concurrently(self._touch, named), strict=True)
        states = dict(touched)
        missing = [digest for digest, was_old in states.items() if was_old is None]
        if any(states.values()):
            self._outwait_collection()
            old = [digest for digest, was_old in states.items() if was_old]
            missing += [digest for digest, there in zip(old, concurrently(self.has, old), strict=True) if not there]
        return missing

    def _touch(self, digest: str) -> bool | None:
        return self._commit.touch(blob_path(digest)) if is_digest(digest) else None

    def _outwait_collection(self) -> None:
        """Return when no garbage collection is deleting that may have looked at a blob before it was made young."""
        until = time.monotonic() + _GC_PATIENCE_SECONDS
        while self._commit.is_claimed(GC_CLAIM):
            if time.monotonic() > until:
                raise StoreError("A garbage collection of the store does not end.", hint="See: waygraph gc")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _read(self, digest: str) -> bytes | None:
        with explained(f"read {blob_path(digest)}"):
            try:
                with self._files.open_input_file(blob_path(digest)) as file:
                    return bytes(file.read())
            except FileNotFoundError:
                return None


def is_digest(text: str) -> bool:
    """Whether `text` is a SHA-256 as blobs are named."""
    return _HASH.fullmatch(text) is not None


def blob_path(digest: str) -> str:
    """Where a blob lies in the store."""
    return f"blobs/{digest[:2]}/{digest}"
