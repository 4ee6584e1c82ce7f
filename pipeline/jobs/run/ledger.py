"""How far is a run, as far as the disk knows? One row a site, written as it happens, for the process that goes on.

A SQLite file on the machine of the coordinator, beside the journals of its explorations. Writes are queued, share
transactions, and are on the disk milliseconds later. Nobody waits for them but who begins with a site: so whatever is
found in the store without an outcome here is of a site that is known to have been begun.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.explore.journal_file import Damaged, JournalFile, Lease, Statement, not_usable, remove, set_aside
from pipeline.jobs.report.outcomes import Call, Exploration, SiteOutcome, SiteStatus
from pipeline.jobs.run.manifest import FORMAT, RunManifest
from pipeline.jobs.sites.site_list import SiteTask
from waygraph.errors import StoreError

log = logging.getLogger(__name__)

#: A run that nobody went on with for longer is begun anew: the store's garbage collection, whose grace this is, may
#: have taken what its unfinished explorations refer to, and what it published first is old by now.
RESUMABLE_SECONDS = 7 * 86_400.0
#: For those who look at a run from outside, its numbers are written so often.
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
#: `begun`: in work, or it was when the coordinator died. `open`: waits for a try, in this call or the next one.
RowStatus = Literal["", "begun", "open", "published", "unchanged", "failed"]


@dataclass(frozen=True, slots=True)
class Row:
    """A site of a run as a ledger knows it; `attempts` counts tries that were begun, `failures` those that failed."""

    position: int
    task: SiteTask
    status: RowStatus
    attempts: int
    failures: int


class RunStatus(BaseModel):
    """A run as it can be seen from outside, a few seconds old at most while it goes on."""

    model_config = ConfigDict(frozen=True)

    manifest: RunManifest
    updated: str
    counts: dict[str, int]


class Ledger:
    """The durable side of one run, of which one process at a time has one. Made by `open`.

    Methods that write give a future: it ends when the write is on the disk, or with the `StoreError` of a disk that
    does not take it.
    """

    def __init__(self, path: Path, lease: Lease, file: JournalFile, manifest: RunManifest, call: int) -> None:
        self.manifest = manifest
        self.resumed = call > 1
        self._path = path
        self._lease = lease
        self._file = file
        self._call = call
        self._clock = time.monotonic()
        self._told = float("-inf")
        self._closed = False

    @classmethod
    def open(cls, folder: Path, manifest: RunManifest, tasks: Sequence[SiteTask], *, resume: bool = True) -> Ledger:
        """Go on with the run that `manifest` asks for, when it is unfinished, else begin it.

        Parameters
        ----------
        tasks : its sites.
        resume : False begins anew in any case.

        Raises
        ------
        InUse
            When another process is at this run.
        StoreError
            When the folder cannot be used.

        """
        path = folder / f"{manifest.key}.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_usable(path, error) from error
        _prune(folder, path)
        lease = Lease.take(path.with_name(f"{path.name}.lock"), "A run of these sites with these settings")
        try:
            if path.exists():
                found = cls._reopen(path, lease) if resume else "a new run was asked for"
                if not isinstance(found, str):
                    return found
                log.warning("ledger/set_aside %s: %s", set_aside(path), found)
            ledger = cls(path, lease, _new_file(path), manifest, 1)
            rows = [(position, task.site, task.start_url) for position, task in enumerate(tasks)]
            ledger._begin_call(
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
        return ledger

    @classmethod
    def _reopen(cls, path: Path, lease: Lease) -> Ledger | str:
        """Go on with an existing file, or say why it is of no use."""
        file = None
        try:
            age = _age_seconds(path)
            if age > RESUMABLE_SECONDS:
                return f"nobody went on with it for {age / 86_400:.0f} days"
            file = JournalFile(path, _SCHEMA)
            meta = dict(file.read("SELECT name, value FROM meta"))
            if meta.get("format") != str(FORMAT):
                return "it was begun by another version"
            manifest = RunManifest.model_validate(json.loads(meta["manifest"]))
            ((calls,),) = file.read("SELECT max(number) FROM calls")
            ledger = cls(path, lease, file, manifest, calls + 1)
            ledger._check()
            ledger._begin_call([])
            file = None
        except (Damaged, KeyError, TypeError, ValueError, zlib.error) as error:
            return f"it cannot be read: {error!r}"
        finally:
            if file is not None:
                file.close()
        return ledger

    def _check(self) -> None:
        """Read all of the file once: whoever goes on with it would read it hours later (Damaged, ValueError, ...)."""
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
        self.calls()

    def _begin_call(self, statements: list[Statement]) -> None:
        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        call: Statement = ("INSERT INTO calls VALUES (?, ?, 0)", [(self._call, began)])
        try:
            self._file.write(lambda: [*statements, call]).result()
        except BaseException:
            self._file.close()
            raise

    # ---- what is known ---------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[Row]:
        """All sites, in the order of the list that the run was begun with."""
        columns = "position, site, start_url, status, attempts, failures"
        sql = f"SELECT {columns} FROM sites WHERE position > ? ORDER BY position LIMIT ?"  # noqa: S608 - all ours
        for position, site, start_url, status, attempts, failures in self._pages(sql):
            yield Row(position, SiteTask(site, start_url), status, attempts, failures)

    def outcomes(self) -> Iterator[tuple[int, SiteOutcome]]:
        """Position and outcome of those that have one, in order."""
        for position, outcome in self._pages(
            "SELECT position, outcome FROM sites WHERE outcome NOT NULL AND position > ? ORDER BY 1 LIMIT ?"
        ):
            yield position, SiteOutcome.model_validate_json(zlib.decompress(outcome))

    def settled(self) -> int:
        """How many sites have an outcome, for good."""
        ((count,),) = self._file.read("SELECT count(*) FROM sites WHERE outcome NOT NULL")
        return int(count)

    def exploration(self, position: int) -> Exploration | None:
        """The account of exploring a site that has no outcome yet, once it was explored."""
        ((packed,),) = self._file.read("SELECT exploration FROM sites WHERE position = ?", (position,))
        return None if packed is None else Exploration.model_validate_json(zlib.decompress(packed))

    def calls(self) -> tuple[Call, ...]:
        """All calls, this one included, oldest first."""
        rows = self._file.read("SELECT started, seconds FROM calls ORDER BY number")
        known = [Call(started=started, seconds=seconds) for started, seconds in rows]
        return (*known[:-1], known[-1].model_copy(update={"seconds": self._seconds()}))

    def _pages(self, sql: str) -> Iterator[Any]:
        last = -1
        while rows := self._file.read(sql, (last, _PAGE)):
            yield from rows
            last = rows[-1][0]

    # ---- what happens ----------------------------------------------------------------------------------------------

    def begin(self, position: int, attempts: int) -> Future[None]:
        """A site is taken up."""
        return self._set(position, "status = 'begun', attempts = ?", lambda: (attempts,))

    def explored(self, position: int, exploration: Exploration) -> Future[None]:
        """A site is explored, and not published yet."""
        return self._set(position, "exploration = ?", lambda: (_packed(exploration),))

    def failed(self, position: int, failures: int) -> Future[None]:
        """A try failed, and there will be another one."""
        return self._set(position, "status = 'open', failures = ?", lambda: (failures,))

    def finish(self, position: int, outcome: SiteOutcome, *, failures: int) -> Future[None]:
        """A site has its outcome, for good."""
        status: SiteStatus = outcome.status
        return self._set(
            position,
            "status = ?, failures = ?, outcome = ?, exploration = NULL",
            lambda: (status, failures, _packed(outcome)),
        )

    def _set(self, position: int, assignments: str, values: Any) -> Future[None]:  # noqa: ANN401 - a function of no arguments
        def statements() -> list[Statement]:
            return [
                (f"UPDATE sites SET {assignments} WHERE position = ?", [(*values(), position)]),  # noqa: S608 - all ours
                ("UPDATE calls SET seconds = ? WHERE number = ?", [(self._seconds(), self._call)]),
            ]

        return self._file.write(statements)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._clock, 3)

    def tell(self, counts: dict[str, int], *, now: bool = False) -> None:
        """Let others see how far the run is; does nothing most of the time, unless it is to be `now`."""
        if not now and time.monotonic() - self._told < _STATUS_SECONDS:
            return
        self._told = time.monotonic()
        updated = datetime.now(UTC).isoformat(timespec="seconds")
        status = RunStatus(manifest=self.manifest, updated=updated, counts=counts)
        beside = self._path.with_name(f"{self._path.stem}.status.part")
        try:
            beside.write_text(status.model_dump_json(), encoding="utf-8")
            beside.replace(_status_path(self._path))
        except OSError as error:  # the run itself goes on: what it rests on is in the database
            log.warning("ledger/status %s: %s", self._path, error)

    def flush(self) -> None:
        """Wait until everything is on the disk that it will take."""
        self._file.write(list).result()

    # ---- end -------------------------------------------------------------------------------------------------------

    def close(self, *, finished: bool) -> None:
        """Let others have the run; a finished one leaves nothing here. May be called twice."""
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
    """Runs of a folder that were begun and did not end, newest first, and whether somebody is at it right now."""
    found = []
    for path in folder.glob("*.status.json"):
        try:
            status = RunStatus.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            log.warning("ledger/status %s: %s", path, error)
            continue
        ledger = folder / f"{status.manifest.key}.sqlite"
        if ledger.exists():
            found.append((status, Lease.is_held(ledger.with_name(f"{ledger.name}.lock"))))
    return sorted(found, key=lambda each: each[0].manifest.run_id, reverse=True)


def _prune(folder: Path, ours: Path) -> None:
    """Remove what nobody can go on with any more."""
    for path in folder.glob("*.sqlite"):
        if path == ours or _age_seconds(path) <= RESUMABLE_SECONDS:
            continue
        try:
            lease = Lease.take(path.with_name(f"{path.name}.lock"), "This run")
            try:
                remove(path)
                _status_path(path).unlink(missing_ok=True)
            finally:
                lease.release()
        except StoreError as error:
            log.warning("ledger/not_removed %s: %s", path, error.message)


def _age_seconds(path: Path) -> float:
    """Since something was written to a database, to its log as well; of one that is gone, no time."""
    written = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(FileNotFoundError):  # whoever has it may end right now, and take it along
            written.append(file.stat().st_mtime)
    return time.time() - max(written) if written else 0.0


def _status_path(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.stem}.status.json")


def _packed(record: BaseModel) -> bytes:
    return zlib.compress(record.model_dump_json().encode(), 1)


def _new_file(path: Path) -> JournalFile:
    try:
        return JournalFile(path, _SCHEMA)
    except Damaged as error:
        raise not_usable(path, error) from error
