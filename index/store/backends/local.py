"""`Commit` on a disk, by fsync, exclusive links and locks; opening a store checks that the disk supports them."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from waygraph.core.errors import StoreError
from waygraph.core.locks import is_locked
from waygraph.index.store.backends.clock import clock
from waygraph.index.store.backends.commit import RECENT_SECONDS, StoreLease

#: Seconds for which a reading of the file system's clock is reused where only hours matter.
_CLOCK_REUSE_SECONDS = 60.0
#: Errors of file systems without hard links or locks.
_UNSUPPORTED = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EMLINK}


class LocalCommit:
    """`Commit` in a folder.

    A file gets its name by a hard link or a rename after its content is on disk. Claims are locked files: the kernel
    releases the lock when the process dies, however it dies, which proves that a claim is dead.

    Parameters
    ----------
    root
        Folder of the store.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        #: The last reading of `now` for `touch`: `clock` at that moment, and the reading.
        self._reading: tuple[float, float] | None = None

    def create_root(self) -> None:
        """Create the store's folder and its parents durably."""
        missing = [folder for folder in (self._root, *self._root.parents) if not folder.exists()]
        self._root.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _fsync(folder.parent)

    def read(self, path: str) -> bytes | None:
        """Read a regular file. Nothing else is waited for: opening a pipe would block until somebody writes to it."""
        try:
            descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"{path} is not a regular file")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def put(self, path: str, content: bytes) -> None:
        """Write a temporary file, fsync it, rename it over the target."""
        self.put_stream(path, (content,))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a temporary file chunk by chunk, fsync it, rename it over the target."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _temporary_file(target, chunks) as (temporary, _):
            temporary.rename(target)

    def create(self, path: str, content: bytes) -> bool:
        """Write a temporary file, fsync it, link it exclusively."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _temporary_file(target, (content,)) as (temporary, _):
            created = _link(temporary, target)
        if created:
            self.persist([path])
        return created

    def ensure(self, path: str, content: bytes) -> bool:
        """Compare the file with `content`, and write it if it differs. It is durable once it is persisted."""
        existing = self.read_register(path)
        if existing != content:
            self.put(path, content)
            return existing is not None
        return bool(self.touch(path))

    def touch(self, path: str) -> bool | None:
        """Update the modification time if it is old."""
        target = self._root / path
        try:
            was_old = self._approximate_now() - target.stat().st_mtime > RECENT_SECONDS
            if was_old:
                os.utime(target)
        except FileNotFoundError:
            return None
        return was_old

    def read_register(self, path: str) -> bytes | None:
        """Read a file."""
        return self.read(path)

    def read_registers(
        self, folder: str, name: str, among: Collection[str] | None = None
    ) -> Mapping[str, bytes | OSError]:
        """Read a file in each of many folders."""
        try:
            names = sorted(among if among is not None else (entry.name for entry in (self._root / folder).iterdir()))
        except FileNotFoundError:
            return {}
        found: dict[str, bytes | OSError] = {}
        for each in names:
            try:
                content = self.read(f"{folder}/{each}/{name}")
            except OSError as error:
                found[each] = error
            else:
                if content is not None:
                    found[each] = content
        return found

    def compare_and_swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Link a new file exclusively; compare and rename an existing one under a lock."""
        target = self._root / path
        if expected is None:
            return self.create(path, content)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f"{target.name}.lock")):
            if self.read(path) != expected:
                return False
            self.put(path, content)
            self.persist([path])
        return True

    def claim(self, path: str) -> StoreLease | None:
        """Lock a new file before it gets its name, so it is never visible unlocked."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        content = f"process {os.getpid()} on {os.uname().nodename}\n".encode()
        with _temporary_file(target, (content,)) as (temporary, descriptor):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _LocalLease(target, os.dup(descriptor)) if _link(temporary, target) else None

    def take_over(self, path: str) -> StoreLease | None:
        """Lock a file whose holder no longer locks it."""
        target = self._root / path
        try:
            descriptor = os.open(target, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Before the lock was acquired, the claim may have been released, and created again by another process.
            if os.path.samestat(os.fstat(descriptor), target.stat()):
                return _LocalLease(target, descriptor)
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return None

    def is_claimed(self, path: str) -> bool:
        """Return whether a process holds the lock."""
        with suppress(FileNotFoundError):
            return is_locked(self._root / path)
        return False

    def persist(self, paths: Iterable[str]) -> None:
        """Fsync the files, then every folder between them and the store."""
        folders: set[Path] = {self._root}
        for path in paths:
            target = self._root / path
            _fsync(target)
            folders.update(folder for folder in target.parents if folder.is_relative_to(self._root))
        for folder in sorted(folders, reverse=True):
            _fsync(folder)

    def create_folder(self, path: str) -> None:
        """Create the folder and its parents."""
        (self._root / path).mkdir(parents=True, exist_ok=True)

    def remove_folder(self, path: str) -> None:
        """Delete the folder tree."""
        try:
            shutil.rmtree(self._root / path)
        except FileNotFoundError:
            if (self._root / path).exists():  # another process is deleting it, too
                self.remove_folder(path)

    def delete(self, paths: Iterable[str], *, under: StoreLease | None = None) -> None:  # noqa: ARG002 - locks cannot be lost
        """Unlink the files one after the other."""
        for path in paths:
            (self._root / path).unlink(missing_ok=True)

    def prune_registers(self, folder: str, name: str, before: float) -> int:  # noqa: ARG002 - there are no records
        """Do nothing: a register is one file."""
        return 0

    def check_writable(self, marker: str) -> None:
        """Check that files can be created in the store's folder, linked exclusively, and locked."""
        if not os.access(self._root, os.W_OK | os.X_OK, effective_ids=True):
            raise StoreError(f"The store {self._root} is not writable.", hint="Change its permissions or use another.")
        probe = self._root / f".{marker}.{uuid.uuid4().hex}.tmp"
        linked = probe.with_suffix(".linked")
        descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with self._requires("hard links"):
                if not _link(probe, linked) or _link(probe, linked):
                    raise OSError(errno.EOPNOTSUPP, "Links are not exclusive")
            with self._requires("locks"):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not is_locked(probe):
                    raise OSError(errno.EOPNOTSUPP, "Locks are not exclusive")
        finally:
            os.close(descriptor)
            probe.unlink(missing_ok=True)
            linked.unlink(missing_ok=True)

    @contextmanager
    def _requires(self, feature: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            raise StoreError(
                f"The file system of {self._root} has no {feature} (flock, link), which publishing needs: "
                f"{error.strerror}.",
                hint="Keep the store on a local disk, or in a bucket: s3://bucket/prefix.",
            ) from error

    def now(self) -> float:
        """Return the modification time of a new file: the clock of the file system, or of its server if it has one."""
        try:
            with TemporaryFile(dir=self._root) as file:
                return os.fstat(file.fileno()).st_mtime
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
                raise
            return time.time()  # a read-only store: no file is deleted by this time

    def _approximate_now(self) -> float:
        """Return `now`, from a reading that is at most a minute old."""
        at = clock()
        if self._reading is None or at - self._reading[0] > _CLOCK_REUSE_SECONDS:
            self._reading = at, self.now()
        read_at, reading = self._reading
        return reading + at - read_at


class _LocalLease:
    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        # In this order: a process that locks the file afterwards finds that it has no name any more.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def is_valid(self) -> bool:
        return True  # the lock ends with the process


@contextmanager
def _temporary_file(target: Path, chunks: Iterable[bytes]) -> Iterator[tuple[Path, int]]:
    """Write a durable file of `chunks` next to `target`; yields its path and descriptor, and unlinks it at the end."""
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        for chunk in chunks:
            view = memoryview(chunk)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
        yield temporary, descriptor
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    return True


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
