"""Files of runs (reports, journals) in a store, under `runs/<run id>/`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pyarrow import fs

from waygraph.core.errors import InvalidInput, NotFound
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.contents import StoreContents

_CHUNK_BYTES = 2**20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


class RunFiles:
    """Files of runs, each written whole or not at all.

    Parameters
    ----------
    contents
        The store.
    """

    def __init__(self, contents: StoreContents) -> None:
        self._contents = contents
        self._commit = contents.commit
        self._location = contents.location

    def list_runs(self) -> list[str]:
        """Return the names of all folders under `runs/`, sorted."""
        with translate_errors(f"list the runs of {self._location}"):
            entries = self._contents.files.get_file_info(fs.FileSelector("runs", allow_not_found=True))
        return sorted(entry.base_name for entry in entries if entry.type == fs.FileType.Directory)

    def write(self, run_id: str, name: str, content: bytes) -> str:
        """Write a file durably, and return its location."""
        path = _run_path(run_id, name)
        with translate_errors(f"write {self._location}/{path}"):
            self._commit.put(path, content)
            self._commit.persist([path])
        return f"{self._location}/{path}"

    def write_stream(self, run_id: str, name: str, chunks: Iterable[bytes]) -> str:
        """Write a file from chunks durably, and return its location."""
        path = _run_path(run_id, name)
        with translate_errors(f"write {self._location}/{path}"):
            self._commit.put_stream(path, chunks)
            self._commit.persist([path])
        return f"{self._location}/{path}"

    def read(self, run_id: str, name: str) -> bytes:
        """Return the content of a file (NotFound)."""
        path = _run_path(run_id, name)
        if (content := self._contents.read_file(path)) is None:
            raise NotFound(f"There is no {self._location}/{path}.", hint="See: waygraph runs")
        return content

    def read_stream(self, run_id: str, name: str) -> Iterator[bytes]:
        """Yield the content of a file in chunks (NotFound)."""
        path = _run_path(run_id, name)
        with translate_errors(f"read {self._location}/{path}"):
            try:
                with self._contents.files.open_input_stream(path) as file:
                    while chunk := bytes(file.read(_CHUNK_BYTES)):
                        yield chunk
            except (FileNotFoundError, NotADirectoryError) as error:
                raise NotFound(f"There is no {self._location}/{path}.", hint="See: waygraph runs") from error


def _run_path(run_id: str, name: str) -> str:
    for part in (run_id, name):
        if not _NAME.fullmatch(part):
            raise InvalidInput(f"'{part}' cannot name a run or its file.", hint="Use letters, digits, '.', '_', '-'.")
    return f"runs/{run_id}/{name}"
