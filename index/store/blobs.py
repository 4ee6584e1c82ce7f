"""Where do screenshots, DOMs and accessibility snapshots go? Into files named by what they hold, written once."""

from __future__ import annotations

import hashlib
import re

from pyarrow import fs

from index.store.commit import Commit
from index.store.manifest import damaged
from waygraph.errors import NotFound

_HASH = re.compile("[0-9a-f]{64}")


class BlobStore:
    """Content-addressed blobs under `blobs/<first 2 digits>/<sha256>`. Safe to use from many processes at once."""

    def __init__(self, files: fs.FileSystem, commit: Commit) -> None:
        self._files = files
        self._commit = commit

    def put(self, content: bytes) -> str:
        """Store `content` once and return its SHA-256 (hex). A damaged copy is replaced.

        The content is on disk when this returns; its name is, when a version that refers to it is published.
        """
        digest = hashlib.sha256(content).hexdigest()
        if self._read(digest) != content:
            self._commit.put(blob_path(digest), content)
        return digest

    def get(self, digest: str) -> bytes:
        """The content of a blob.

        Raises
        ------
        NotFound
            When there is no such blob.
        StoreError
            When its content is not what its name says.

        """
        content = self._read(digest) if _HASH.fullmatch(digest) else None
        if content is None:
            raise NotFound(f"The store holds no blob '{digest}'.", hint="Index the site again.")
        if hashlib.sha256(content).hexdigest() != digest:
            raise damaged(blob_path(digest), "its content does not match its name")
        return content

    def has(self, digest: str) -> bool:
        """Whether there is a blob of that name."""
        if not _HASH.fullmatch(digest):
            return False
        return bool(self._files.get_file_info(blob_path(digest)).type == fs.FileType.File)

    def _read(self, digest: str) -> bytes | None:
        try:
            with self._files.open_input_file(blob_path(digest)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None


def blob_path(digest: str) -> str:
    """Where a blob lies in the store."""
    return f"blobs/{digest[:2]}/{digest}"
