"""Temporary folders of processes: made with a lock that these hold, and removed later when they were all killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waygraph.core.errors import EnvironmentMissing
from waygraph.core.locks import is_locked

#: File in each folder that is locked while a process uses the folder.
_IN_USE = "in-use"


@contextmanager
def locked_folder(parent: str, prefix: str) -> Iterator[tuple[Path, int]]:
    """Make a folder for the time of the block, and remove those whose processes were killed before they could.

    All processes of a container are killed at once when its first one ends, and a container that is started again has
    the files of the one before.

    Parameters
    ----------
    parent
        Where the folder is made.
    prefix
        How its name begins, as do those of the folders that are removed.

    Yields
    ------
    tuple[Path, int]
        The folder, and a descriptor whose lock says that it is in use. A process that inherits the descriptor keeps the
        lock for as long as it runs.

    Raises
    ------
    EnvironmentMissing
        If the folder cannot be made.
    """
    _remove_abandoned(Path(parent), prefix)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        raise EnvironmentMissing(
            f"A temporary folder cannot be made ({error}).",
            hint="Free space, or set TMPDIR to a writable folder with a short path.",
        ) from error
    # It gets its name when it is locked: another process must not find it unlocked.
    unnamed = folder / f"{_IN_USE}.new"
    try:
        with unnamed.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unnamed.rename(folder / _IN_USE)
            yield folder, lock.fileno()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(parent: Path, prefix: str) -> None:
    for file in parent.glob(f"{prefix}*/{_IN_USE}"):
        # Others may have removed it meanwhile.
        with suppress(FileNotFoundError, PermissionError):
            if _is_ours(file) and not is_locked(file):
                shutil.rmtree(file.parent, ignore_errors=True)


def _is_ours(file: Path) -> bool:
    """Whether the file and its folder were made by this user, and no other could change them."""
    folder, lock = file.parent.lstat(), file.lstat()
    return (
        stat.S_ISDIR(folder.st_mode)
        and stat.S_IMODE(folder.st_mode) == stat.S_IRWXU
        and stat.S_ISREG(lock.st_mode)
        and folder.st_uid == lock.st_uid == os.getuid()
    )
