"""Supervisor of a private Ray: the process that starts Ray's daemons, and kills them when its driver has ended.

The driver starts it as a script in a new session and holds the other end of its stdin. That pipe closes when the
driver no longer needs Ray or was killed; the supervisor then kills everything that was started here. It does the same
when a daemon of Ray has ended, since Ray then answers nothing and its driver would wait for ever; the driver notices it
by the supervisor's stdout, which closes. As the *subreaper* of its descendants (prctl(2)) it inherits every orphan, so
neither daemons and workers of Ray nor processes that workers started (browsers, their drivers) outlive it. Ray's own
cleanup is not enough: after a SIGKILL of the driver its agents stay for a minute, and workers that are just starting
for half a minute.

It imports the standard library and Ray only: it is run by its path, independent of what the driver has imported.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

#: Ray's own folder in the one that is made for it. Ray lets every user write to its folder and those below, where its
#: sockets and logs are; the folder around it is closed to others.
RAY_FOLDER = "r"
_PR_SET_CHILD_SUBREAPER = 36
#: Names of the processes without which Ray does not work: the control store and the node's daemon.
_DAEMONS = frozenset({"gcs_server", "raylet"})
_ending = threading.Lock()


def main() -> None:
    """Start Ray in the folder argv[1] with the arguments of `ray.init` in argv[2] (JSON).

    Run until stdin closes or a daemon of Ray ends.
    """
    folder = Path(sys.argv[1])
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
    threading.Thread(target=_end_with_stdin, args=(folder,), daemon=True).start()
    import ray  # noqa: PLC0415 - takes most of a second, in which the driver may already end

    ray.init(address="local", _temp_dir=str(folder / RAY_FOLDER), **json.loads(sys.argv[2]))
    sys.stdout.write(ray.get_runtime_context().gcs_address + "\n")
    sys.stdout.flush()
    _wait_until_a_daemon_ends()
    _end(folder, 1)


def _end_with_stdin(folder: Path) -> None:
    sys.stdin.buffer.read()
    _end(folder, 0)


def _end(folder: Path, status: int) -> None:
    """Kill everything that was started here, remove the folder, and exit."""
    _ending.acquire()  # never released: one thread ends the process
    try:
        _kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(status)  # other threads are waiting, or inside `ray.init`


def _wait_until_a_daemon_ends() -> None:
    daemons = [child for child in _children() if _read(f"/proc/{child}/comm").strip() in _DAEMONS]
    with suppress(ProcessLookupError):  # one has ended already
        select.select([os.pidfd_open(daemon) for daemon in daemons], [], [])


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(child) for task in tasks for child in _read(f"{task}/children").split()]


def _read(path: str) -> str:
    """Return the content of a file below /proc; empty if its process or thread has ended meanwhile."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _kill_descendants() -> None:
    """Kill child processes until none is left: the children of a killed process become children of this one."""
    while True:
        for child in _children():
            os.kill(child, signal.SIGKILL)  # not reaped yet, so its id cannot belong to another process
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
