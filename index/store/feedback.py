"""What did agents report of the steps they walked? Kept per site, for maintenance to read."""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pyarrow import fs

from index.store.commit import Commit
from index.store.concurrency import concurrently
from index.store.layout import explained
from index.store.manifest import checked_site_key

#: A file that is this large becomes the older of two; the one before that is dropped.
MOST_BYTES = 4_000_000
FEEDBACK_FOLDER = "runs/feedback"


class FeedbackNotes(Protocol):
    """Where reports are kept: `FeedbackLog` on a disk, `FeedbackObjects` on an object store."""

    def add(self, site: str, version: int, walked: Sequence[Mapping[str, Any]]) -> None:
        """Keep what became of steps of a version (StoreError when the store cannot be written)."""
        ...

    def read(self, site: str) -> Iterator[dict[str, Any]]:
        """All reports on a site that are kept, oldest first."""
        ...


class FeedbackLog:
    """The reports in `<store>/runs/feedback/`, one JSON object a line. Several processes may append at once."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FEEDBACK_FOLDER

    def add(self, site: str, version: int, walked: Sequence[Mapping[str, Any]]) -> None:
        """Append what became of steps of a version (StoreError when the store cannot be written)."""
        path = self._path(site)
        with explained(f"keep reports in {path}"):
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MOST_BYTES:
                path.replace(path.with_suffix(".older.jsonl"))
            # One write of whole lines at the end of the file: others' lines come before or after, never between.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(descriptor, _lines(version, walked))
            finally:
                os.close(descriptor)

    def read(self, site: str) -> Iterator[dict[str, Any]]:
        """All reports on a site that are kept, oldest first; a line that a crash cut short is left out."""
        path = self._path(site)
        for each in (path.with_suffix(".older.jsonl"), path):
            with explained(f"read {each}"):
                content = each.read_bytes() if each.exists() else b""
            yield from _reports(content)

    def _path(self, site: str) -> Path:
        return self._folder / f"{checked_site_key(site)}.jsonl"


class FeedbackObjects:
    """The reports under `runs/feedback/<site>/`, one object for each call of `add`: object stores do not append.

    Nothing is dropped here; `waygraph gc` does that, or a lifecycle rule of the bucket.
    """

    def __init__(self, location: str, files: fs.FileSystem, commit: Commit) -> None:
        self._location = location
        self._files = files
        self._commit = commit

    def add(self, site: str, version: int, walked: Sequence[Mapping[str, Any]]) -> None:
        """Write one object (StoreError when the store cannot be written)."""
        # Names sort by time.
        name = f"{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S-%f}-{uuid.uuid4().hex[:8]}.jsonl"
        path = f"{FEEDBACK_FOLDER}/{checked_site_key(site)}/{name}"
        with explained(f"keep reports in {self._location}/{path}"):
            self._commit.put(path, _lines(version, walked))

    def read(self, site: str) -> Iterator[dict[str, Any]]:
        """All reports on a site, oldest first."""
        folder = f"{FEEDBACK_FOLDER}/{checked_site_key(site)}"
        with explained(f"read {self._location}/{folder}"):
            entries = self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
            for content in concurrently(self._content, sorted(entry.path for entry in entries)):
                yield from _reports(content)

    def _content(self, path: str) -> bytes:
        with self._files.open_input_stream(path) as file:
            return bytes(file.read())


def _lines(version: int, walked: Sequence[Mapping[str, Any]]) -> bytes:
    when = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return "".join(f"{json.dumps({'when': when, 'version': version, **step})}\n" for step in walked).encode()


def _reports(content: bytes) -> Iterator[dict[str, Any]]:
    """Reports that are whole; a line that a crash cut short is left out."""
    for line in content.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
