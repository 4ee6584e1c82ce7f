"""Journal of paid replies: a file of this machine from which an interrupted description of a map goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from waygraph.agents.describe.prompt import PageReply
from waygraph.core.schemas import UsageModel
from waygraph.index.store.backends.failures import translate_errors
from waygraph.pipeline.explore.checkpoint.journal_file import FileLease
from waygraph.pipeline.jobs.work_files import safe_file_name, work_folder


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    digest: str
    model: str
    reply: PageReply
    usage: UsageModel


class ReplyJournal:
    """Replies by request and model. Each is durable before the next call starts.

    Parameters
    ----------
    path
        The file, one JSON document per line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._replies = {(line.digest, line.model): line.reply for line in _read(path)}

    @classmethod
    @contextmanager
    def open(cls, store: str, site: str) -> Iterator[Self]:
        """Open the journal of a site for the time of the block.

        Parameters
        ----------
        store
            Location of the store: the journal is in its folder, or in this machine's cache folder for a bucket.
        site
            Key of the site.

        Yields
        ------
        Self
            The journal.

        Raises
        ------
        InUse
            If another process describes the site.
        """
        path = work_folder(store, "descriptions") / f"{safe_file_name(site)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lease = FileLease.take(path.with_name(f"{path.name}.lock"), "This description")
        try:
            yield cls(path)
        finally:
            lease.release()

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, digest: str, model: str) -> PageReply | None:
        """Return the reply of a model to a request; None if it was not asked."""
        return self._replies.get((digest, model))

    def add(self, digest: str, model: str, reply: PageReply, usage: UsageModel) -> None:
        """Keep a reply (StoreError if it cannot be written)."""
        self._replies[digest, model] = reply
        line = _Line(digest=digest, model=model, reply=reply, usage=usage).model_dump_json().encode() + b"\n"
        with translate_errors(f"write {self._path}"), self._path.open("ab") as file:
            # A killed process may have left half of a line, which must not swallow this one.
            file.write(b"\n" + line if file.tell() and not self._ends_with_line_end() else line)
            file.flush()
            os.fsync(file.fileno())

    def remove(self) -> None:
        """Delete the file: its replies are in a published version."""
        self._path.unlink(missing_ok=True)

    def _ends_with_line_end(self) -> bool:
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def _read(path: Path) -> Iterator[_Line]:
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            yield _Line.model_validate_json(line)
        except ValidationError:
            continue  # cut off when its writer was killed
