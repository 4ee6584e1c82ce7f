"""File locks by `flock`, which the kernel releases when the process that holds them ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileInUse(Exception):
    """Another process holds the lock of a file."""


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file for the time of the block. The file is created, and stays.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    FileInUse
        If another process holds the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileInUse(str(path)) from error
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return whether a process holds an exclusive lock on a file.

    Parameters
    ----------
    path
        The file, which must exist.

    Returns
    -------
    bool
        Whether it is locked at this moment.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    PermissionError
        If the file may not be read.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
