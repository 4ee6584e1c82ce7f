"""Feedback of agents on the steps they walked, kept per site for maintenance."""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pyarrow import fs

from waygraph.index.store.backends.commit import Commit
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.names import validate_site_key

#: A log file of this size is rotated: it replaces the older file of the site.
MAX_LOG_BYTES = 4_000_000
FEEDBACK_FOLDER = "runs/feedback"


class FeedbackStorage(Protocol):
    """Storage of feedback: `FeedbackLog` on a disk, `FeedbackObjects` in an object store."""

    def add(self, site: str, version: int, steps: Sequence[Mapping[str, Any]]) -> None:
        """Store the outcomes of walked steps of a version (StoreError if the store cannot be written)."""
        ...

    def read(self, site: str) -> Iterator[dict[str, Any]]:
        """Yield all stored outcomes of a site's steps, oldest first."""
        ...


class FeedbackLog:
    """Feedback in `<store>/runs/feedback/`, one JSON object per line. Several processes may append at once."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FEEDBACK_FOLDER

    def add(self, site: str, version: int, steps: Sequence[Mapping[str, Any]]) -> None:
        """Append the outcomes of walked steps of a version (StoreError if the store cannot be written)."""
        path = self._path(site)
        with translate_errors(f"write feedback to {path}"):
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
                path.replace(path.with_suffix(".older.jsonl"))
            # One appending write of whole lines: lines of other processes come before or after, never in between.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(descriptor, _lines(version, steps))
            finally:
                os.close(descriptor)

    def read(self, site: str) -> Iterator[dict[str, Any]]:
        """Yield all stored outcomes of a site's steps, oldest first, without lines that a crash truncated."""
        path = self._path(site)
        for each in (path.with_suffix(".older.jsonl"), path):
            with translate_errors(f"read {each}"):
                content = each.read_bytes() if each.exists() else b""
            yield from _parse_lines(content)

    def _path(self, site: str) -> Path:
        return self._folder / f"{validate_site_key(site)}.jsonl"


class FeedbackObjects:
    """Feedback under `runs/feedback/<site>/`, one object per call of `add`, since object stores cannot append.

    Old objects are deleted by `waygraph gc`, or by a lifecycle rule of the bucket.

    Parameters
    ----------
    location
        Location of the store, for error messages.
    files
        File system of the store.
    commit
        Commit protocol of the store.
    """

    def __init__(self, location: str, files: fs.FileSystem, commit: Commit) -> None:
        self._location = location
        self._files = files
        self._commit = commit

    def add(self, site: str, version: int, steps: Sequence[Mapping[str, Any]]) -> None:
        """Write one object (StoreError if the store cannot be written)."""
        # Names sort by time.
        name = f"{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S-%f}-{uuid.uuid4().hex[:8]}.jsonl"
        path = f"{FEEDBACK_FOLDER}/{validate_site_key(site)}/{name}"
        with translate_errors(f"write feedback to {self._location}/{path}"):
            self._commit.put(path, _lines(version, steps))

    def read(self, site: str) -> Iterator[dict[str, Any]]:
        """Yield all stored outcomes of a site's steps, oldest first."""
        folder = f"{FEEDBACK_FOLDER}/{validate_site_key(site)}"
        with translate_errors(f"read {self._location}/{folder}"):
            entries = self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
            for content in concurrent_map(self._content, sorted(entry.path for entry in entries)):
                yield from _parse_lines(content)

    def _content(self, path: str) -> bytes:
        with self._files.open_input_stream(path) as file:
            return bytes(file.read())


def _lines(version: int, steps: Sequence[Mapping[str, Any]]) -> bytes:
    when = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return "".join(f"{json.dumps({'when': when, 'version': version, **step})}\n" for step in steps).encode()


def _parse_lines(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of all complete lines."""
    for line in content.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
