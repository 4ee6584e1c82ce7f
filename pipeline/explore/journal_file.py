"""How does one process own a SQLite file, and write to it without making others wait?

The file is opened in exclusive mode: nobody else may read it meanwhile, and SQLite then needs no memory that processes
share, which network file systems lack. A side file that is locked for as long as its owner lives names the owner.
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

from waygraph.errors import InUse, StoreError
from waygraph.locks import is_locked

log = logging.getLogger(__name__)

#: One SQL statement and the parameters of each of its executions.
Statement = tuple[str, Iterable[Sequence[Any]]]

#: To find out whether a lease is held one has to take it, for microseconds: so often and so long others wait for that.
_LOOKS, _LOOK_SECONDS = 5, 0.01
#: Writes that share a transaction at most, so that the first of them does not wait for ever.
_GROUP = 256
#: Primary result codes of SQLite that speak of the machine, not of the file's content.
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
    """The file is no SQLite database, or one that breaks off."""


class Lease:
    """The right to use a file, which ends with `release` or with the process, however that ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, what: str = "This exploration") -> Lease:
        """Lock the side file `path`.

        Parameters
        ----------
        what : what the file is of, at the beginning of a sentence.

        Raises
        ------
        InUse
            When another process holds it; the message says which.
        StoreError
            When it cannot be written.
        """
        looks = _LOOKS
        try:
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # Its holder may have taken the name away between our opening and locking it.
                    if os.path.samestat(os.fstat(descriptor), path.stat()):
                        os.ftruncate(descriptor, 0)
                        os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
                        return cls(path, descriptor)
                except BlockingIOError:
                    holder = os.pread(descriptor, 300, 0).decode(errors="replace").strip() or "another process"
                    os.close(descriptor)
                    if looks:  # most likely an owner; it may be somebody who looks whether there is one, too
                        looks -= 1
                        time.sleep(_LOOK_SECONDS)
                        continue
                    raise InUse(
                        f"{what} is under way already, in {holder} (lock file {path}).",
                        hint="Wait until it has ended, or stop it: what it found is kept.",
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
        """Whether somebody holds the lease at `path` right now. Who may not read it is told that somebody does."""
        try:
            return is_locked(path)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True  # of another user, whose process removes it when it ends in order

    def release(self) -> None:
        """Let others have it."""
        # In this order: whoever locks the file after us finds that it has lost its name.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


@dataclass(slots=True)
class _Write:
    prepare: Callable[[], Sequence[Statement]]
    done: Future[None] = field(default_factory=Future)


class JournalFile:
    """A SQLite file with a thread that writes to it, in the order of the calls, each write whole or not at all.

    Writes that queue up while the disk is busy share one transaction, and so one wait for the disk.

    Raises
    ------
    Damaged
        When the file exists and is no readable database.
    StoreError
        When it cannot be opened or made.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        # Reading and writing share a connection: an exclusive file has no other. The lock keeps transactions apart.
        self._lock = threading.Lock()
        try:
            # What a logged-in browser was shown is not for everybody.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
        except OSError as error:
            raise not_usable(path, error) from error
        except sqlite3.Error as error:
            raise self._explained(error) from error
        try:
            # In this order: a database that is exclusive before it is in WAL mode keeps its index in private memory.
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
        """Rows of a query, as of the writes that were done by now.

        Raises
        ------
        Damaged, StoreError
            As above.
        """
        with self._lock:
            if self._closed:
                raise self._closed_already()
            try:
                return self._db.execute(sql, parameters).fetchall()
            except sqlite3.Error as error:
                raise self._explained(error) from error

    def write(self, prepare: Callable[[], Sequence[Statement]]) -> Future[None]:
        """Execute what `prepare` returns as one transaction, soon; `prepare` is called on the writing thread.

        The future ends when the write is on the disk. Cancelling it before its turn means that it never happened.
        """
        write = _Write(prepare)
        with self._closing:
            if self._closed:
                raise self._closed_already()
            self._queue.put(write)
        return write.done

    def close(self) -> None:
        """Finish what was begun and close the file. May be called twice."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        try:
            self._db.close()
        except sqlite3.Error as error:  # everything acknowledged is in the write-ahead log all the same
            log.warning("journal/close %s: %s", self._path, error)

    def _closed_already(self) -> StoreError:
        return StoreError(f"The journal {self._path} is closed already.")

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
            # A full disk may have rolled it back already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, OSError):
            return not_usable(self._path, error)
        if not isinstance(error, sqlite3.Error):
            return error
        # No code: Python could not make sense of what SQLite read.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & 0xFF in _ENVIRONMENT and code != sqlite3.SQLITE_IOERR_SHORT_READ:
            return not_usable(self._path, error)
        damaged = Damaged(f"{self._path}: {error}")
        damaged.__cause__ = error
        return damaged


def not_usable(path: Path, error: Exception) -> StoreError:
    """What to tell the user when the machine does not let us write."""
    return StoreError(
        f"The journal {path} cannot be used: {error}.",
        hint="Check space and permissions of that folder, then run the same command again: what was found is kept.",
    )


def set_aside(path: Path) -> Path:
    """Rename the database `path`, in place of the one that was set aside before."""
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
    """Delete the database `path` and what was set aside."""
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
