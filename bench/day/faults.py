"""Faults of a day: a process is killed each minute, the disk fills, the clock moves, the service is switched off."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.day.container import Container


def _shows(*words: str) -> Callable[[str], bool]:
    return lambda line: any(word in line for word in words)


def _is_browser(line: str) -> bool:
    # Debian starts the browser by a shell script, and the driver is told the browser's path.
    return "headless" in line and "--type=" not in line and not line.startswith("/bin/sh") and "run-driver" not in line


#: What is killed, in this order: the service that it belongs to, and which command lines are meant. None is all of the
#: service: what tini runs.
VICTIMS: Mapping[str, tuple[str, Callable[[str], bool] | None]] = {
    "replica": ("serve", _shows("ray::ServeReplica")),
    "browser": ("refresh", _is_browser),
    "proxy": ("serve", _shows("ray::ProxyActor")),
    "refresh command": ("refresh", _shows("bin/waygraph refresh")),
    "service": ("serve", None),
    "explorer": ("refresh", _shows("ExplorerActor")),
    "controller": ("serve", _shows("ray::ServeController")),
    "publisher": ("refresh", _shows("PublisherActor")),
    "raylet of the service": ("serve", _shows("raylet/raylet")),
    "driver of the browser": ("refresh", _shows("run-driver")),
    "control store of the service": ("serve", _shows("gcs/gcs_server")),
    "refresh container": ("refresh", None),
}


@dataclass(frozen=True)
class Kill:
    """A process that was killed, at a time of `time.monotonic`."""

    kind: str
    at: float


class Killer:
    """Kills the next process of `VICTIMS` with SIGKILL, whenever it is told to.

    Parameters
    ----------
    containers
        The services by name.
    """

    def __init__(self, containers: Mapping[str, Container]) -> None:
        self.kills: list[Kill] = []
        self._containers = containers
        self._waiting = list(VICTIMS)

    def kill_next(self) -> Kill | None:
        """Kill a process of the kind that waits longest among those that run now.

        Returns
        -------
        Kill or None
            What was killed; None if no process of any kind runs.
        """
        for kind in self._waiting:
            for victim in self._candidates(kind):
                with suppress(psutil.NoSuchProcess):
                    victim.kill()
                    self._waiting = [*(each for each in self._waiting if each != kind), kind]
                    self.kills.append(Kill(kind, time.monotonic()))
                    return self.kills[-1]
        return None

    def _candidates(self, kind: str) -> Iterator[psutil.Process]:
        service, is_wanted = VICTIMS[kind]
        processes = self._containers[service].processes()
        if is_wanted is None:
            yield from processes[1:2]
            return
        for process in processes:
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if is_wanted(" ".join(process.cmdline())):
                    yield process


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount a file system in memory of so many MB; needs root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "waygraph-day", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Fill the file system of a folder, up to the last block, for the time of the block."""
    filler = folder / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while True:
            free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
            os.posix_fallocate(file.fileno(), file.tell(), max(free, 4096))
            file.seek(0, os.SEEK_END)
    try:
        yield
    finally:
        filler.unlink()
