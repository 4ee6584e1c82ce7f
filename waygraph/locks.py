"""Does a process hold a file? By `flock`, which ends with the process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def is_locked(path: Path) -> bool:
    """Whether somebody holds an exclusive lock on a file right now.

    Raises
    ------
    FileNotFoundError, PermissionError
        When it is not there, or may not be read.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
