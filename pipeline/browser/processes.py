"""Which processes belong to a browser, how much memory do they take, and how does one make sure that they are gone?

Linux: everything is read from /proc. A process is named by its id and its start time, so that a number that was given
out again is never mistaken for the process that had it before.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

_PROC = Path("/proc")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_PR_SET_CHILD_SUBREAPER = 36
#: Fields of /proc/PID/stat after the command, counted from the state (proc(5), fields 3, 5 and 22).
_STATE, _GROUP, _START = 0, 2, 19
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """One process; `started` is in clock ticks since the machine was booted."""

    pid: int
    started: int
    group: int

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; a zombie has."""
        stat = self._stat()
        return stat is not None and stat[_STATE] not in {"Z", "X"}

    @property
    def is_there(self) -> bool:
        """Whether it is running, or has ended without anybody having taken note of it."""
        return self._stat() is not None

    def _stat(self) -> list[str] | None:
        stat = _stat(self.pid)
        return stat if stat is not None and int(stat[_START]) == self.started else None

    @property
    def command(self) -> str:
        """Its command line, arguments separated by zero bytes; empty when it has ended."""
        try:
            return (_PROC / str(self.pid) / "cmdline").read_text(errors="replace")
        except OSError:
            return ""


def adopt_orphans() -> None:
    """Let orphaned descendants of this process become its children, so that what it killed can also be reaped.

    Where this is not possible they become zombies of some other process.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        log.warning("browser/no_subreaper: %s", os.strerror(ctypes.get_errno()))


def process(pid: int) -> Process | None:
    """The process that has this id now; None when there is none."""
    stat = _stat(pid)
    return None if stat is None else Process(pid, int(stat[_START]), int(stat[_GROUP]))


def children(pid: int) -> frozenset[Process]:
    """Processes that `pid` has started and that were not reaped."""
    found: set[int] = set()
    with contextlib.suppress(OSError):  # it ended meanwhile
        for task in (_PROC / str(pid) / "task").iterdir():
            found.update(map(int, (task / "children").read_text().split()))
    return frozenset(each for child in found if (each := process(child)) is not None)


def descendants(roots: Iterable[Process]) -> frozenset[Process]:
    """The given processes and all that they started, directly or not."""
    found: set[Process] = set()
    left = list(roots)
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += children(each.pid)
    return frozenset(found)


def memory_bytes(processes: Iterable[Process]) -> int:
    """Memory that the processes take together; what several of them share is counted once (PSS)."""
    return sum(_memory(each.pid) for each in processes)


def machine_memory_bytes() -> int:
    """Memory that this machine has, or that its container may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(machine, int(_CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        return machine


async def kill(processes: Iterable[Process], *, patience_s: float = 2.0) -> bool:
    """Kill processes and their groups, except our own group, and wait until they are gone; False when some are not."""
    left = [each for each in processes if each.is_running]
    ours = os.getpgid(0)
    for group in {each.group for each in left} - {ours}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for each in left:
        if each.is_running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each.pid, signal.SIGKILL)
    deadline = time.monotonic() + patience_s
    while left := [each for each in left if each.is_running]:
        if time.monotonic() > deadline:
            log.error("browser/not_killed: %s", ", ".join(str(each.pid) for each in left))
            return False
        await asyncio.sleep(_POLL_S)  # a poll: nothing tells us of the end of a grandchild
    return True


async def reap(processes: frozenset[Process], *, patience_s: float = 2.0) -> None:
    """Take note of the end of processes that became our children as orphans. Not for those that we started."""
    deadline = time.monotonic() + patience_s
    while left := children(os.getpid()) & processes:
        for each in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(each.pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
        if time.monotonic() > deadline:
            return  # what still runs was told of by `kill`
        await asyncio.sleep(_POLL_S)  # its first thread has ended, but not yet all of them


def _stat(pid: int) -> list[str] | None:
    try:
        # The command, in parentheses, may hold anything.
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None


def _memory(pid: int) -> int:
    folder = _PROC / str(pid)
    try:
        for line in (folder / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # ended, or sandboxed: those do not show their maps
    try:
        _, resident, shared, *_ = (folder / "statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
