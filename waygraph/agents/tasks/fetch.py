"""Download of a task file, with a limit of its size and a check of its hash."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from waygraph.core.errors import InvalidInput, WaygraphError

if TYPE_CHECKING:
    from waygraph.agents.tasks.sources import TaskSource

#: Largest download, and largest file in an archive, in bytes. The largest known task file has 1.3 MB.
MAX_BYTES = 32 * 2**20
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


class TasksNotFetched(WaygraphError):
    """A task file could not be downloaded, is too large, or is not the one that was expected. Nothing was written."""

    exit_code, http_status, slug, title = 4, 502, "tasks-not-fetched", "Tasks not fetched"


@dataclass(frozen=True, slots=True)
class FetchedTasks:
    """A task file that was downloaded.

    Attributes
    ----------
    content
        The file.
    sha256
        Its hash.
    is_pinned
        Whether the hash is the one that was expected; otherwise none was.
    """

    content: bytes
    sha256: str
    is_pinned: bool


def choose_source(source: TaskSource, url: str | None, sha256: str | None) -> TaskSource:
    """Return a source with the address and the hash that a user gives.

    Parameters
    ----------
    source
        The known source.
    url
        Another address of the file itself; None: the known one.
    sha256
        Its hash; None: the known one, if the address is.

    Returns
    -------
    TaskSource
        The source to fetch.

    Raises
    ------
    InvalidInput
        If no address is known, or the hash is none.
    """
    if sha256 is not None and (len(sha256) != 64 or not all(digit in "0123456789abcdef" for digit in sha256.lower())):
        raise InvalidInput(f"'{sha256}' is no SHA-256.", hint="It has 64 hexadecimal digits.")
    if url is not None:
        source = replace(source, url=url, commit="", member="", archive_sha256="", sha256="")
    if not source.url:
        raise InvalidInput(
            f"No address of a file of {source.name} is known to be right.",
            hint=f"See {source.page}, and give one: --url URL --sha256 HASH",
        )
    return source if sha256 is None else replace(source, sha256=sha256.lower())


def fetch_tasks(source: TaskSource) -> FetchedTasks:
    """Download a task file.

    Parameters
    ----------
    source
        The source, with a URL.

    Returns
    -------
    FetchedTasks
        The file.

    Raises
    ------
    TasksNotFetched
        If it cannot be downloaded, is larger than `MAX_BYTES`, or has another hash than expected.
    """
    content = _download(source.url)
    if source.member:
        _check(content, source.archive_sha256, f"The archive at {source.url}")
        content = _unpack(content, source)
    if source.sha256:
        _check(content, source.sha256, f"The file from {source.url}")
    return FetchedTasks(content, hashlib.sha256(content).hexdigest(), is_pinned=bool(source.sha256))


def write_tasks(fetched: FetchedTasks, path: Path) -> None:
    """Write a file that was fetched; the file appears complete or not at all.

    Parameters
    ----------
    fetched
        The file.
    path
        Where to write it.

    Raises
    ------
    InvalidInput
        If it exists with another content.
    """
    if path.exists() and path.read_bytes() != fetched.content:
        raise InvalidInput(f"'{path}' exists and is another file.", hint="Choose another name with --output.")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_bytes(fetched.content)
    unfinished.replace(path)


def _download(url: str) -> bytes:
    content = bytearray()
    try:
        with httpx.stream("GET", url, follow_redirects=True, timeout=_TIMEOUT) as response:
            if not response.is_success:
                raise TasksNotFetched(f"{url} was answered with status {response.status_code}.")
            for part in response.iter_bytes():
                content += part
                if len(content) > MAX_BYTES:
                    raise TasksNotFetched(f"{url} gives more than {MAX_BYTES:,} bytes, which is no task file.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TasksNotFetched(f"{url} could not be downloaded: {error or type(error).__name__}") from error
    return bytes(content)


def _check(content: bytes, expected: str, subject: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise TasksNotFetched(
            f"{subject} has the SHA-256 {found}, not {expected}.",
            hint="Either it was changed, or it is another version. Scores of other versions do not compare.",
        )


def _unpack(content: bytes, source: TaskSource) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(source.member) as file:
            unpacked = file.read(MAX_BYTES + 1)
    except (zipfile.BadZipFile, KeyError) as error:
        raise TasksNotFetched(f"{source.url} is no archive with the file {source.member}.") from error
    if len(unpacked) > MAX_BYTES:
        raise TasksNotFetched(f"{source.member} has more than {MAX_BYTES:,} bytes, which is no task file.")
    return unpacked
