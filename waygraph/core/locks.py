"""File locks by `flock`, which the kernel releases when the process that holds them ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


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
