"""Blob store in memory, for tests and benchmarks that need no store on a disk."""

from __future__ import annotations

import hashlib


class MemoryBlobs(dict[str, bytes]):
    """Blobs by their SHA-256; with `keep=False` contents are discarded and only hashes returned."""

    def __init__(self, *, keep: bool = True) -> None:
        super().__init__()
        self._keep = keep

    def put(self, content: bytes) -> str:
        """Store a blob and return its SHA-256."""
        key = hashlib.sha256(content).hexdigest()
        if self._keep:
            self[key] = content
        return key

    def get(self, key: str) -> bytes:  # type: ignore[override]
        """Return a stored blob."""
        return self[key]
