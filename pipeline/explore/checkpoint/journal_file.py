"""A SQLite file with one owner, written by a thread.

The file is opened in exclusive mode: no other process may read it, and SQLite needs no shared memory, which network
file systems lack. A lock file, held while its owner lives, names the owner.
"""

from __future__ import annotations

import fcntl
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waygraph.core.errors import InUse, StoreError
from waygraph.core.locks import is_locked

log = logging.getLogger(__name__)

#: One SQL statement and the parameters of each of its executions.
Statement = tuple[str, Iterable[Sequence[Any]]]

#: Number and interval of retries of a lease. Another process may hold it for microseconds to test it (`is_held`).
_LOOKS, _LOOK_SECONDS = 5, 0.01
#: Maximal number of writes of one transaction, so that the first of them does not wait for ever.
_GROUP = 256
#: Primary result codes of SQLite that concern the machine, not the content of the file.
_ENVIRONMENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
_SIDE_FILES = ("-wal", "-journal", "-shm")


class Damaged(Exception):
    """The file is not a SQLite database, or is truncated."""


class FileLease:
    """Exclusive lease of a file. It ends with `release` or with the process.

    Parameters
    ----------
    path
        The lock file.
    descriptor
        Its open, locked descriptor.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, what: str = "This exploration") -> FileLease:
        """Lock the lock file `path`.

        Parameters
        ----------
        path
            The lock file.
        what
            Subject of the error message.

        Returns
        -------
        FileLease
            The lease.

        Raises
        ------
        InUse
            If another process holds it; the message names the process.
        StoreError
            If the lock file cannot be written.
        """
        looks = _LOOKS
        try:
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # Its holder may have removed the file between opening and locking it here.
                    if os.path.samestat(os.fstat(descriptor), path.stat()):
                        os.ftruncate(descriptor, 0)
                        os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
                        return cls(path, descriptor)
                except BlockingIOError:
                    holder = os.pread(descriptor, 300, 0).decode(errors="replace").strip() or "another process"
                    os.close(descriptor)
                    if looks:  # probably an owner; possibly a process that tests the lease
                        looks -= 1
                        time.sleep(_LOOK_SECONDS)
                        continue
                    raise InUse(
                        f"{what} is in progress already, in {holder} (lock file {path}).",
                        hint="Wait until it ends, or stop it: its results are kept.",
                    ) from None
                except FileNotFoundError:
                    pass
                except BaseException:
                    os.close(descriptor)
                    raise
                os.close(descriptor)
        except OSError as error:
            raise not_usable(path, error) from error

    @staticmethod
    def is_held(path: Path) -> bool:
        """Return whether a process holds the lease at `path`. True if the lock file may not be read."""
        try:
            return is_locked(path)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True  # of another user, whose process removes it at its orderly end

    def release(self) -> None:
        """Release the lease."""
        # In this order: a process that locks the file next finds that it has lost its name.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


@dataclass(slots=True)
class _Write:
    prepare: Callable[[], Sequence[Statement]]
    done: Future[None] = field(default_factory=Future)


class JournalFile:
    """A SQLite file with a thread that performs writes in the order of the calls, each atomically.

    Writes that queue up while the disk is busy share one transaction, and so one wait for the disk.

    Parameters
    ----------
    path
        The file. It is created if it does not exist.
    schema
        SQL that creates missing tables.

    Raises
    ------
    Damaged
        If the file exists and is not a readable database.
    StoreError
        If it cannot be opened or created.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        # Reading and writing share the only connection that an exclusive file can have. The lock separates
        # transactions.
        self._lock = threading.Lock()
        try:
            # Pages of a logged-in session are confidential.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
        except OSError as error:
            raise not_usable(path, error) from error
        except sqlite3.Error as error:
            raise self._explained(error) from error
        try:
            # In this order: a database in exclusive mode before WAL mode keeps its index in private memory.
            for pragma in ("locking_mode=EXCLUSIVE", "page_size=8192", "journal_mode=WAL", "synchronous=FULL"):
                self._db.execute(f"PRAGMA {pragma}").fetchall()
            self._db.executescript(schema)
            _persist_name(path)
        except (sqlite3.Error, OSError) as error:
            self._db.close()
            raise self._explained(error) from error
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name=f"journal {path.name}", daemon=True)
        self._thread.start()

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query, as of the completed writes.

        Parameters
        ----------
        sql
            A SELECT statement.
        parameters
            Its parameters.

        Returns
        -------
        list[Any]
            The rows.

        Raises
        ------
        Damaged, StoreError
            As for the class.
        """
        with self._lock:
            if self._closed:
                raise self._closed_already()
            try:
                return self._db.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise self._explained(error) from error

    def write(self, prepare: Callable[[], Sequence[Statement]]) -> Future[None]:
        """Queue a transaction with the statements that `prepare` returns on the writing thread.

        The future completes when the write is on the disk. Cancelling it before its turn cancels the write.
        """
        write = _Write(prepare)
        with self._closing:
            if self._closed:
                raise self._closed_already()
            self._queue.put(write)
        return write.done

    def close(self) -> None:
        """Complete queued writes and close the file. Idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        try:
            self._db.close()
        except sqlite3.Error as error:  # acknowledged writes are in the write-ahead log
            log.warning("journal/close %s: %s", self._path, error)

    def _closed_already(self) -> StoreError:
        return StoreError(f"The journal {self._path} is closed.")

    def _write_all(self) -> None:
        while True:
            group = [self._queue.get()]
            while len(group) < _GROUP and group[-1] is not None:
                try:
                    group.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            self._write_group([write for write in group if write is not None])
            if group[-1] is None:
                return

    def _write_group(self, group: Sequence[_Write]) -> None:
        ready: list[tuple[_Write, Sequence[Statement]]] = []
        for write in group:
            if write.done.set_running_or_notify_cancel():
                try:
                    ready.append((write, write.prepare()))
                except Exception as error:  # noqa: BLE001 - it is raised where the write is awaited
                    write.done.set_exception(error)
        if not ready:
            return
        try:
            with self._lock:
                self._transact([statement for _, statements in ready for statement in statements])
        except Exception as error:  # noqa: BLE001 - as above; each gets its own, for its own traceback
            for write, _ in ready:
                write.done.set_exception(self._explained(error))
        else:
            for write, _ in ready:
                write.done.set_result(None)

    def _transact(self, statements: Sequence[Statement]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for sql, rows in statements:
                self._db.executemany(sql, rows)
            self._db.execute("COMMIT")
        except BaseException:
            # A full disk may have rolled back already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, OSError):
            return not_usable(self._path, error)
        if not isinstance(error, sqlite3.Error):
            return error
        # No code: Python could not interpret what SQLite read.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & 0xFF in _ENVIRONMENT and code != sqlite3.SQLITE_IOERR_SHORT_READ:
            return not_usable(self._path, error)
        damaged = Damaged(f"{self._path}: {error}")
        damaged.__cause__ = error
        return damaged


def not_usable(path: Path, error: Exception) -> StoreError:
    """Return the error for a file that cannot be written."""
    return StoreError(
        f"The journal {path} cannot be used: {error}.",
        hint="Check space and permissions of that folder, then run the same command again: results are kept.",
    )


def set_aside(path: Path) -> Path:
    """Rename the database `path` to `<name>.stale`, replacing an earlier one."""
    stale = path.with_name(f"{path.name}.stale")
    try:
        for suffix in (*_SIDE_FILES, ""):
            source, target = (file.with_name(file.name + suffix) for file in (path, stale))
            target.unlink(missing_ok=True)
            if source.exists():
                source.replace(target)
    except OSError as error:
        raise not_usable(path, error) from error
    return stale


def remove(path: Path) -> None:
    """Delete the database `path` and its stale copy."""
    try:
        for file in (path, path.with_name(f"{path.name}.stale")):
            for suffix in ("", *_SIDE_FILES):
                file.with_name(file.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise not_usable(path, error) from error


def _persist_name(path: Path) -> None:
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
