"""The durable state of a run: one row per site, from which the next invocation resumes.

It is a SQLite file on the coordinator's machine, beside the journals of its explorations. Writes are queued, share
transactions, and reach the disk within milliseconds. Only the beginning of a site is awaited. A version in the store
without an outcome here therefore belongs to a site that is recorded as begun.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from waygraph.core.errors import StoreError
from waygraph.pipeline.explore.checkpoint.journal_file import (
    Damaged,
    FileLease,
    JournalFile,
    Statement,
    not_usable,
    remove,
    set_aside,
)
from waygraph.pipeline.jobs.report.outcomes import Exploration, Invocation, SiteOutcome, SiteStatus
from waygraph.pipeline.jobs.run.manifest import FORMAT, RunManifest
from waygraph.pipeline.jobs.sites.site_list import SiteTask

log = logging.getLogger(__name__)

#: A run that was not resumed for longer starts again. This equals the grace period of the store's garbage collection,
#: which may delete blobs of unfinished explorations after it, and the first published maps are old by then.
RESUMABLE_SECONDS = 7 * 86_400.0
#: Interval at which the status file is written, which other processes read.
_STATUS_SECONDS = 5.0
_PAGE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sites (
    position INTEGER PRIMARY KEY, site TEXT NOT NULL, start_url TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
    exploration BLOB, outcome BLOB
);
CREATE TABLE IF NOT EXISTS calls (number INTEGER PRIMARY KEY, started TEXT NOT NULL, seconds REAL NOT NULL);
"""
#: `begun`: in progress, or it was when the coordinator died. `open`: waits for an attempt in this or the next
#: invocation.
RowStatus = Literal["", "begun", "open", "published", "unchanged", "failed"]


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A site of a run. `attempts` counts attempts that were begun, `failures` those that failed."""

    position: int
    task: SiteTask
    status: RowStatus
    attempts: int
    failures: int


class RunStatus(BaseModel):
    """Status of a run for other processes, at most a few seconds old while the run is active."""

    model_config = ConfigDict(frozen=True)

    manifest: RunManifest
    updated: str
    counts: dict[str, int]


class RunDatabase:
    """The database of one run, held by one process at a time. Create it with `open`.

    Methods that write return a future, which completes when the write is on the disk, or fails with a `StoreError`.

    Parameters
    ----------
    path
        The SQLite file.
    lease
        Exclusive lease of the file.
    file
        The open file.
    manifest
        What the run was started with.
    invocation
        Number of this invocation, from 1.
    """

    def __init__(self, path: Path, lease: FileLease, file: JournalFile, manifest: RunManifest, invocation: int) -> None:
        self.manifest = manifest
        self.resumed = invocation > 1
        self._path = path
        self._lease = lease
        self._file = file
        self._invocation = invocation
        self._started_at = time.monotonic()
        self._status_written_at = float("-inf")
        self._closed = False

    @classmethod
    def open(
        cls, folder: Path, manifest: RunManifest, tasks: Sequence[SiteTask], *, resume: bool = True
    ) -> RunDatabase:
        """Resume the unfinished run with the key of `manifest`, or begin it.

        Parameters
        ----------
        folder
            Folder of run databases.
        manifest
            What this invocation requests.
        tasks
            Sites of the run.
        resume
            If False, begin a new run in any case.

        Returns
        -------
        RunDatabase
            Open and leased.

        Raises
        ------
        InUse
            If another process works on this run.
        StoreError
            If the folder cannot be used.
        """
        path = folder / f"{manifest.key}.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_usable(path, error) from error
        _prune(folder, path)
        lease = FileLease.take(path.with_name(f"{path.name}.lock"), "A run of these sites with these settings")
        try:
            if path.exists():
                found = cls._reopen(path, lease) if resume else "a new run was requested"
                if not isinstance(found, str):
                    return found
                log.warning("run_database/set_aside %s: %s", set_aside(path), found)
            database = cls(path, lease, _new_file(path), manifest, 1)
            rows = [(position, task.site, task.start_url) for position, task in enumerate(tasks)]
            database._begin_invocation(
                [
                    (
                        "INSERT INTO meta VALUES (?, ?)",
                        [("manifest", manifest.model_dump_json()), ("format", str(FORMAT))],
                    ),
                    ("INSERT INTO sites (position, site, start_url) VALUES (?, ?, ?)", rows),
                ]
            )
        except BaseException:
            lease.release()
            raise
        return database

    @classmethod
    def _reopen(cls, path: Path, lease: FileLease) -> RunDatabase | str:
        """Open an existing file, or return why it cannot be resumed."""
        file = None
        try:
            age = _age_seconds(path)
            if age > RESUMABLE_SECONDS:
                return f"it was not resumed for {age / 86_400:.0f} days"
            file = JournalFile(path, _SCHEMA)
            meta = dict(file.read("SELECT name, value FROM meta"))
            if meta.get("format") != str(FORMAT):
                return "it was begun by another version"
            manifest = RunManifest.model_validate(json.loads(meta["manifest"]))
            ((invocations,),) = file.read("SELECT max(number) FROM calls")
            database = cls(path, lease, file, manifest, invocations + 1)
            database._check()
            database._begin_invocation([])
            file = None
        except (Damaged, KeyError, TypeError, ValueError, zlib.error) as error:
            return f"it cannot be read: {error!r}"
        finally:
            if file is not None:
                file.close()
        return database

    def _check(self) -> None:
        """Read the whole file once, so that damage raises now (Damaged, ValueError, ...) and not hours later."""
        problems = self._file.read("PRAGMA quick_check(1)")
        if problems != [("ok",)]:
            raise Damaged(problems[0][0])
        sites = 0
        for row in self.rows():
            if row.position != sites or row.status not in get_args(RowStatus):
                raise ValueError(f"site {sites} is {row}")
            if row.status in {"begun", "open"}:
                self.exploration(row.position)
            sites += 1
        if sites != self.manifest.sites:
            raise ValueError(f"{sites} sites instead of {self.manifest.sites}")
        for _ in self.outcomes():
            pass
        self.invocations()

    def _begin_invocation(self, statements: list[Statement]) -> None:
        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        invocation: Statement = ("INSERT INTO calls VALUES (?, ?, 0)", [(self._invocation, began)])
        try:
            self._file.write(lambda: [*statements, invocation]).result()
        except BaseException:
            self._file.close()
            raise

    # ---- reading ---------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[SiteRow]:
        """Yield all sites, in the order of the list that the run was begun with."""
        columns = "position, site, start_url, status, attempts, failures"
        sql = f"SELECT {columns} FROM sites WHERE position > ? ORDER BY position LIMIT ?"  # noqa: S608 - all ours
        for position, site, start_url, status, attempts, failures in self._pages(sql):
            yield SiteRow(position, SiteTask(site, start_url), status, attempts, failures)

    def outcomes(self) -> Iterator[tuple[int, SiteOutcome]]:
        """Yield position and outcome of the sites that have one, in order. After a turn it is that of its turns."""
        for position, outcome in self._pages(
            "SELECT position, outcome FROM sites WHERE outcome NOT NULL AND position > ? ORDER BY 1 LIMIT ?"
        ):
            yield position, SiteOutcome.model_validate_json(zlib.decompress(outcome))

    def count_final(self) -> int:
        """Return the number of sites with a final outcome."""
        ((count,),) = self._file.read(
            "SELECT count(*) FROM sites WHERE outcome NOT NULL AND status NOT IN ('begun', 'open')"
        )
        return int(count)

    def outcomes_of_turns(self) -> Iterator[tuple[int, SiteOutcome]]:
        """Yield position and outcome so far of the sites that had a turn and are not finished, in order."""
        for position, outcome in self._pages(
            """SELECT position, outcome FROM sites WHERE outcome NOT NULL AND status IN ('begun', 'open')
            AND position > ? ORDER BY 1 LIMIT ?"""
        ):
            yield position, SiteOutcome.model_validate_json(zlib.decompress(outcome))

    def outcome(self, position: int) -> SiteOutcome | None:
        """Return the outcome of a site, or that of its turns so far, else None."""
        ((packed,),) = self._file.read("SELECT outcome FROM sites WHERE position = ?", (position,))
        return None if packed is None else SiteOutcome.model_validate_json(zlib.decompress(packed))

    def exploration(self, position: int) -> Exploration | None:
        """Return the summary of a site that is explored and has no outcome yet, else None."""
        ((packed,),) = self._file.read("SELECT exploration FROM sites WHERE position = ?", (position,))
        return None if packed is None else Exploration.model_validate_json(zlib.decompress(packed))

    def invocations(self) -> tuple[Invocation, ...]:
        """Return all invocations including this one, oldest first."""
        rows = self._file.read("SELECT started, seconds FROM calls ORDER BY number")
        known = [Invocation(started=started, seconds=seconds) for started, seconds in rows]
        return (*known[:-1], known[-1].model_copy(update={"seconds": self._elapsed_seconds()}))

    def _pages(self, sql: str) -> Iterator[Any]:
        last = -1
        while rows := self._file.read(sql, (last, _PAGE)):
            yield from rows
            last = rows[-1][0]

    # ---- writing ---------------------------------------------------------------------------------------------------

    def begin(self, position: int, attempts: int) -> Future[None]:
        """Record that an attempt began."""
        return self._update(position, "status = 'begun', attempts = ?", lambda: (attempts,))

    def set_exploration(self, position: int, exploration: Exploration) -> Future[None]:
        """Record that a site is explored and not published yet."""
        return self._update(position, "exploration = ?", lambda: (_packed(exploration),))

    def reopen_site(self, position: int, failures: int) -> Future[None]:
        """Record a failed attempt that will be retried."""
        return self._update(position, "status = 'open', failures = ?", lambda: (failures,))

    def end_turn(self, position: int, outcome: SiteOutcome, attempts: int) -> Future[None]:
        """Record that the turn of a site ended. The site is not finished; `outcome` is that of its turns so far.

        `attempts` are those before the attempt that the turn belongs to, which continues in the next turn.
        """
        return self._update(
            position,
            "status = 'open', attempts = ?, outcome = ?, exploration = NULL",
            lambda: (attempts, _packed(outcome)),
        )

    def finish(self, position: int, outcome: SiteOutcome, *, failures: int) -> Future[None]:
        """Record the final outcome of a site."""
        status: SiteStatus = outcome.status
        return self._update(
            position,
            "status = ?, failures = ?, outcome = ?, exploration = NULL",
            lambda: (status, failures, _packed(outcome)),
        )

    def _update(self, position: int, assignments: str, values: Callable[[], tuple[Any, ...]]) -> Future[None]:
        def statements() -> list[Statement]:
            return [
                (f"UPDATE sites SET {assignments} WHERE position = ?", [(*values(), position)]),  # noqa: S608 - all ours
                ("UPDATE calls SET seconds = ? WHERE number = ?", [(self._elapsed_seconds(), self._invocation)]),
            ]

        return self._file.write(statements)

    def _elapsed_seconds(self) -> float:
        return round(time.monotonic() - self._started_at, 3)

    def write_status(self, counts: dict[str, int], *, now: bool = False) -> None:
        """Write the status file, at most every few seconds unless `now` is set."""
        if not now and time.monotonic() - self._status_written_at < _STATUS_SECONDS:
            return
        self._status_written_at = time.monotonic()
        updated = datetime.now(UTC).isoformat(timespec="seconds")
        status = RunStatus(manifest=self.manifest, updated=updated, counts=counts)
        beside = self._path.with_name(f"{self._path.stem}.status.part")
        try:
            beside.write_text(status.model_dump_json(), encoding="utf-8")
            beside.replace(_status_path(self._path))
        except OSError as error:  # the run continues: everything that it needs is in the database
            log.warning("run_database/status %s: %s", self._path, error)

    def flush(self) -> None:
        """Wait until all queued writes are on the disk."""
        self._file.write(list).result()

    # ---- closing ---------------------------------------------------------------------------------------------------

    def close(self, *, finished: bool) -> None:
        """Release the run. The files of a finished run are removed. Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            self._file.close()
            if finished:
                remove(self._path)
                _status_path(self._path).unlink(missing_ok=True)
        finally:
            self._lease.release()


def unfinished_runs(folder: Path) -> list[tuple[RunStatus, bool]]:
    """Return the unfinished runs of a folder, newest first, each with whether a process holds it."""
    found = []
    for path in folder.glob("*.status.json"):
        try:
            status = RunStatus.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            log.warning("run_database/status %s: %s", path, error)
            continue
        database = folder / f"{status.manifest.key}.sqlite"
        if database.exists():
            found.append((status, FileLease.is_held(database.with_name(f"{database.name}.lock"))))
    return sorted(found, key=lambda each: each[0].manifest.run_id, reverse=True)


def _prune(folder: Path, ours: Path) -> None:
    """Remove run databases that are too old to be resumed."""
    for path in folder.glob("*.sqlite"):
        if path == ours or _age_seconds(path) <= RESUMABLE_SECONDS:
            continue
        try:
            lease = FileLease.take(path.with_name(f"{path.name}.lock"), "This run")
            try:
                remove(path)
                _status_path(path).unlink(missing_ok=True)
            finally:
                lease.release()
        except StoreError as error:
            log.warning("run_database/not_removed %s: %s", path, error.message)


def _age_seconds(path: Path) -> float:
    """Return the seconds since the last write to a database or its log. 0 if it does not exist."""
    written = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(FileNotFoundError):  # its holder may remove it at any moment
            written.append(file.stat().st_mtime)
    return time.time() - max(written) if written else 0.0


def _status_path(database: Path) -> Path:
    return database.with_name(f"{database.stem}.status.json")


def _packed(record: BaseModel) -> bytes:
    return zlib.compress(record.model_dump_json().encode(), 1)


def _new_file(path: Path) -> JournalFile:
    try:
        return JournalFile(path, _SCHEMA)
    except Damaged as error:
        raise not_usable(path, error) from error
