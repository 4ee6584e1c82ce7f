"""What must storage promise so that a published map is whole or absent? The seam, and what a local disk does for it."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol


class Lease(Protocol):
    """An exclusive claim that this process holds. It ends with `release`, or with the process."""

    def release(self) -> None:
        """Give the claim up and delete its file."""
        ...


class Commit(Protocol):
    """The few operations that need more than a plain filesystem. All paths are relative to the store, with `/`.

    On a local disk they are built of fsync, exclusive links and locks (`LocalCommit`); an object store has conditional
    writes for them.
    """

    def put(self, path: str, content: bytes) -> None:
        """Write a file whole or not at all; whoever writes last wins."""
        ...

    def swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Replace a file durably if it holds `expected` (None: does not exist); False, and no change, if not."""
        ...

    def claim(self, path: str) -> Lease | None:
        """Create a claim; None when it exists."""
        ...

    def take_over(self, path: str) -> Lease | None:
        """The claim of a process that provably died; None when there is none or its holder may be alive."""
        ...

    def persist(self, paths: Iterable[str]) -> None:
        """Return when these files, and their names in all folders above, would survive a power failure."""
        ...


class LocalCommit:
    """`Commit` on a local (or NFS) disk.

    A file appears under its name by a hard link or rename, when its content is on disk already. Claims are locked
    files: the kernel drops the lock when the process dies, however it dies, which is what makes a dead claim provable.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def make_root(self) -> None:
        """Make the store's folder and those above it, durably, as far as they are missing."""
        missing = [folder for folder in (self._root, *self._root.parents) if not folder.exists()]
        self._root.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _fsync(folder.parent)

    def put(self, path: str, content: bytes) -> None:
        """Write beside the file, fsync, rename over it."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with _written_beside(target, content) as (temporary, _):
            temporary.rename(target)

    def swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Exclusive link for a new file; compare and rename under a lock for one that exists."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if expected is None:
            with _written_beside(target, content) as (temporary, _):
                created = _link(temporary, target)
            if created:
                self.persist([path])
            return created
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
        with _written_beside(target, content) as (temporary, descriptor):
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

    def persist(self, paths: Iterable[str]) -> None:
        """Fsync the files, then every folder between them and the store."""
        folders: set[Path] = {self._root}
        for path in paths:
            target = self._root / path
            _fsync(target)
            folders.update(folder for folder in target.parents if folder.is_relative_to(self._root))
        for folder in sorted(folders, reverse=True):
            _fsync(folder)


class _LocalLease:
    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        # In this order: whoever locks the file after us finds that it has lost its name.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


@contextmanager
def _written_beside(target: Path, content: bytes) -> Iterator[tuple[Path, int]]:
    """A durable file with `content` in the folder of `target`, and its descriptor; its name is gone afterwards."""
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        view = memoryview(content)
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
