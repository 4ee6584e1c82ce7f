"""How does a disk keep what `Commit` promises? By fsync, and by exclusive links and locks, which are tried first."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from index.store.clock import clock
from index.store.commit import YOUNG_SECONDS, Lease
from waygraph.errors import StoreError
from waygraph.locks import is_locked

#: How long a look at the file system's clock is good for, where hours are told apart.
_MEASURED_SECONDS = 60.0
#: What file systems say that have no hard links, or no locks.
_UNSUPPORTED = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EMLINK}


class LocalCommit:
    """`Commit` in a folder.

    A file appears under its name by a hard link or rename, when its content is on disk already. Claims are locked
    files: the kernel drops the lock when the process dies, however it dies, which is what makes a dead claim provable.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._measured: tuple[float, float] | None = None
        """When `now` was last asked for `touch`, and what it said."""

    def make_root(self) -> None:
        """Make the store's folder and those above it, durably."""
        missing = [folder for folder in (self._root, *self._root.parents) if not folder.exists()]
        self._root.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _fsync(folder.parent)

    def put(self, path: str, content: bytes) -> None:
        """Write beside the file, fsync, rename over it."""
        self.put_stream(path, (content,))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """The same, chunk by chunk."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _written_beside(target, chunks) as (temporary, _):
            temporary.rename(target)

    def create(self, path: str, content: bytes) -> bool:
        """Write beside the file, fsync, link exclusively."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _written_beside(target, (content,)) as (temporary, _):
            created = _link(temporary, target)
        if created:
            self.persist([path])
        return created

    def keep(self, path: str, content: bytes) -> bool:
        """Compare what is there, and write it when it is not that. It is durable when it is persisted."""
        there = self.register(path)
        if there != content:
            self.put(path, content)
            return there is not None
        return bool(self.touch(path))

    def touch(self, path: str) -> bool | None:
        """Set the time of the last change, when it is long ago."""
        target = self._root / path
        try:
            was_old = self._about_now() - target.stat().st_mtime > YOUNG_SECONDS
            if was_old:
                os.utime(target)
        except FileNotFoundError:
            return None
        return was_old

    def register(self, path: str) -> bytes | None:
        """A file."""
        try:
            return (self._root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def registers(self, folder: str, name: str, among: Collection[str] | None = None) -> Mapping[str, bytes]:
        """A file in each of many folders."""
        try:
            between = sorted(among if among is not None else (entry.name for entry in (self._root / folder).iterdir()))
        except FileNotFoundError:
            return {}
        found = ((each, self.register(f"{folder}/{each}/{name}")) for each in between)
        return {each: content for each, content in found if content is not None}

    def swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Exclusive link for a new file; compare and rename under a lock for one that exists."""
        target = self._root / path
        if expected is None:
            return self.create(path, content)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f"{target.name}.lock")):
            if not target.exists() or target.read_bytes() != expected:
                return False
            self.put(path, content)
            self.persist([path])
        return True

    def claim(self, path: str) -> Lease | None:
        """Lock a new file before it gets its name, so that nobody ever sees it unlocked."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        content = f"process {os.getpid()} on {os.uname().nodename}\n".encode()
        with _written_beside(target, (content,)) as (temporary, descriptor):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _LocalLease(target, os.dup(descriptor)) if _link(temporary, target) else None

    def take_over(self, path: str) -> Lease | None:
        """Lock a file whose holder no longer does."""
        target = self._root / path
        try:
            descriptor = os.open(target, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its holder may have released it, and another one claimed it anew, before the lock was ours.
            if os.path.samestat(os.fstat(descriptor), target.stat()):
                return _LocalLease(target, descriptor)
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return None

    def is_claimed(self, path: str) -> bool:
        """Whether somebody holds the lock."""
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

    def make_folder(self, path: str) -> None:
        """Make it and those above it."""
        (self._root / path).mkdir(parents=True, exist_ok=True)

    def remove_folder(self, path: str) -> None:
        """Delete the tree."""
        try:
            shutil.rmtree(self._root / path)
        except FileNotFoundError:
            if (self._root / path).exists():  # somebody else deletes it too: what was gone was a file in it
                self.remove_folder(path)

    def delete(self, paths: Iterable[str], *, under: Lease | None = None) -> None:  # noqa: ARG002 - locks last
        """One after the other."""
        for path in paths:
            (self._root / path).unlink(missing_ok=True)

    def prune(self, folder: str, name: str, before: float) -> int:  # noqa: ARG002 - nothing is kept here
        """Nothing: a register is one file."""
        return 0

    def check_writable(self, marker: str) -> None:
        """Whether files can be made in the store's folder, linked, and locked."""
        if not os.access(self._root, os.W_OK | os.X_OK, effective_ids=True):
            raise StoreError(f"The store {self._root} is not writable.", hint="Change its permissions or use another.")
        tried = self._root / f".{marker}.{uuid.uuid4().hex}.tmp"
        linked = tried.with_suffix(".linked")
        descriptor = os.open(tried, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with self._without("hard links"):
                if not _link(tried, linked) or _link(tried, linked):
                    raise OSError(errno.EOPNOTSUPP, "Links are not exclusive")
            with self._without("locks"):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not is_locked(tried):
                    raise OSError(errno.EOPNOTSUPP, "Locks are not exclusive")
        finally:
            os.close(descriptor)
            tried.unlink(missing_ok=True)
            linked.unlink(missing_ok=True)

    @contextmanager
    def _without(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            raise StoreError(
                f"The file system of {self._root} has no {what} (flock, link), which publishing rests on: "
                f"{error.strerror}.",
                hint="Keep the store on a local disk, or in a bucket: s3://bucket/prefix.",
            ) from error

    def now(self) -> float:
        """The clock of the file system, which is that of its server where there is one: when a new file was made."""
        try:
            with TemporaryFile(dir=self._root) as file:
                return os.fstat(file.fileno()).st_mtime
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
                raise
            return time.time()  # what cannot be written can only be looked at: nothing is deleted by this time

    def _about_now(self) -> float:
        """The same, by a look in the last minute."""
        at = clock()
        if self._measured is None or at - self._measured[0] > _MEASURED_SECONDS:
            self._measured = at, self.now()
        then, said = self._measured
        return said + at - then


class _LocalLease:
    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        # In this order: whoever locks the file after us finds that it has lost its name.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def lasts(self) -> bool:
        return True  # as long as this process lives


@contextmanager
def _written_beside(target: Path, chunks: Iterable[bytes]) -> Iterator[tuple[Path, int]]:
    """A durable file of `chunks` in the folder of `target`, and its descriptor; its name is gone afterwards."""
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
