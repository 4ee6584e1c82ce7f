"""What did agents report of the steps they walked? Appended to a file per site, for maintenance to read."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from index.store.layout import explained
from index.store.manifest import checked_site_key

#: A file that is this large becomes the older of two; the one before that is dropped.
MOST_BYTES = 4_000_000


class FeedbackLog:
    """The reports in `<store>/runs/feedback/`, one JSON object a line. Several processes may append at once."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "runs" / "feedback"

    def add(self, site: str, version: int, walked: Sequence[Mapping[str, Any]]) -> None:
        """Append what became of steps of a version (StoreError when the store cannot be written)."""
        when = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        lines = "".join(f"{json.dumps({'when': when, 'version': version, **step})}\n" for step in walked)
        path = self._path(site)
        with explained(f"keep reports in {path}"):
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MOST_BYTES:
                path.replace(path.with_suffix(".older.jsonl"))
            # One write of whole lines at the end of the file: others' lines come before or after, never between.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(descriptor, lines.encode())
            finally:
                os.close(descriptor)

    def read(self, site: str) -> Iterator[dict[str, Any]]:
        """All reports on a site that are kept, oldest first; a line that a crash cut short is left out."""
        path = self._path(site)
        for each in (path.with_suffix(".older.jsonl"), path):
            with explained(f"read {each}"):
                lines = each.read_text(encoding="utf-8").splitlines() if each.exists() else []
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    continue

    def _path(self, site: str) -> Path:
        return self._folder / f"{checked_site_key(site)}.jsonl"
