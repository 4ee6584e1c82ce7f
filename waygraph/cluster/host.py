"""Who ends a private Ray when the process that wanted it is gone? This one: a small process around Ray's daemons.

The driver starts it as a script in a session of its own and holds the other end of its stdin. When that pipe
breaks, because the driver needs Ray no more or because it was killed, everything started here is killed: as the
*subreaper* of its descendants (prctl(2)) this process inherits every orphan, so that neither daemons and workers of
Ray, nor what workers started (browsers, their drivers), can outlive it. Ray's own precautions are not enough: its
agents stay for a minute after a SIGKILL of the driver, and workers that are just starting for half of one.

Standard library and Ray only: it is run by path, beside whatever the driver has imported.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Start Ray in the folder argv[1] as argv[2] (JSON arguments of `ray.init`) says; serve until stdin ends."""
    folder = Path(sys.argv[1])
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
    threading.Thread(target=_end_with_stdin, args=(folder,), daemon=True).start()
    import ray  # noqa: PLC0415 - takes most of a second, in which the driver may already die

    ray.init(address="local", _temp_dir=str(folder), **json.loads(sys.argv[2]))
    sys.stdout.write(ray.get_runtime_context().gcs_address + "\n")
    sys.stdout.flush()
    threading.Event().wait()


def _end_with_stdin(folder: Path) -> None:
    sys.stdin.buffer.read()
    try:
        _kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)  # the main thread waits, or is in the middle of `ray.init`


def _kill_descendants() -> None:
    """Kill children until none is left: the children of a killed one become ours."""
    while True:
        for task in Path("/proc/self/task").iterdir():
            for child in (task / "children").read_text().split():
                os.kill(int(child), signal.SIGKILL)  # unreaped, so the number cannot be another process's yet
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
