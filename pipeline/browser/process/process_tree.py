"""Processes of a browser: which ones they are, how much memory they use, and how they are killed. Linux only.

A `psutil.Process` is identified by its id and its start time. Thus a process id that the system assigned again is never
mistaken for the earlier process.
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
from pathlib import Path

import psutil

log = logging.getLogger(__name__)

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.02


def adopt_orphans() -> None:
    """Make this process the parent of its orphaned descendants (prctl(2), `PR_SET_CHILD_SUBREAPER`), to reap them.

    Where the system call fails they become zombies of another process.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        log.warning("browser/no_subreaper: %s", os.strerror(ctypes.get_errno()))


def is_alive(process: psutil.Process) -> bool:
    """Whether a process has not ended; a zombie has."""
    try:
        return process.is_running() and process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def command_line(process: psutil.Process) -> tuple[str, ...]:
    """Return the arguments of a process, the program first; empty if it has ended."""
    try:
        return tuple(process.cmdline())
    except psutil.Error:
        return ()


def children(pid: int) -> frozenset[psutil.Process]:
    """Return the children of `pid`, including zombies that were not reaped."""
    try:
        return frozenset(psutil.Process(pid).children())
    except psutil.NoSuchProcess:
        return frozenset()


def descendants(roots: Iterable[psutil.Process]) -> frozenset[psutil.Process]:
    """Return the given processes with their children, grandchildren and so on."""
    found: set[psutil.Process] = set()
    for root in roots:
        found.add(root)
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            found.update(root.children(recursive=True))
    return frozenset(found)


def memory_bytes(processes: Iterable[psutil.Process]) -> int:
    """Return the memory of the processes together, in bytes; memory that several of them share counts once (PSS)."""
    return sum(_memory_bytes(process) for process in processes)


def machine_memory_bytes() -> int:
    """Return the memory of this machine, or the limit of its container, in bytes."""
    machine: int = psutil.virtual_memory().total
    try:
        return min(machine, int(_CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        return machine


async def kill(processes: Iterable[psutil.Process], *, timeout_s: float = 2.0) -> bool:
    """Kill processes and their process groups, except the group of this process, and wait for their end.

    Parameters
    ----------
    processes
        The processes to kill; those that have ended are ignored.
    timeout_s
        Time to wait for their end, in seconds.

    Returns
    -------
    bool
        Whether all of them ended in time.
    """
    left = [process for process in processes if is_alive(process)]
    groups = {group for process in left if (group := _group_of(process)) is not None}
    for group in groups - {os.getpgid(0)}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    deadline = time.monotonic() + timeout_s
    while left := [process for process in left if is_alive(process)]:
        if time.monotonic() > deadline:
            log.error("browser/not_killed: %s", ", ".join(str(process.pid) for process in left))
            return False
        await asyncio.sleep(_POLL_S)  # polling: the system does not report the end of a grandchild
    return True


async def reap(processes: frozenset[psutil.Process], *, timeout_s: float = 2.0) -> None:
    """Reap processes that became children of this process as orphans (`adopt_orphans`).

    Do not pass processes that this process started itself, such as drivers: asyncio reaps those.
    """
    deadline = time.monotonic() + timeout_s
    while left := children(os.getpid()) & processes:
        for process in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)  # noqa: ASYNC222 - it does not block
        if time.monotonic() > deadline:
            return  # `kill` has logged the ones that still run
        await asyncio.sleep(_POLL_S)  # the main thread of a process may end before its other threads


def _group_of(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return None


def _memory_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        pass  # sandboxed processes do not show their maps
    except psutil.Error:
        return 0
    try:
        memory = process.memory_info()
        return int(memory.rss - memory.shared)
    except psutil.Error:
        return 0
