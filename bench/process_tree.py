"""What a command takes with all processes below it: wall and CPU seconds, peak memory, number of processes.

Linux only. `measured` runs a command below a runner of its own, the module's `main`. Two lower bounds of the CPU time
are known, and the larger one counts. The kernel adds up what processes took that were waited for. The runner waits for
all, being the subreaper of what it starts (prctl(2)), but the children of a process that ignores SIGCHLD are missing,
as those of Ray's daemon are. And the last readings of all processes can be added; these lack the last moments of each.
Memory is the sum of proportional set sizes (PSS), which counts a page that several processes share once; it is smaller
while further processes run the same libraries.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36
#: Time between two readings of CPU time, in seconds.
_SAMPLE_SECONDS = 0.05
#: Time between two readings of memory, in units of the time that one takes: it is costly, and must disturb little.
_REST = 8
#: A part of the command line, and the kind of process; the first that fits counts.
_KINDS = (
    ("--type=renderer", "browser: renderers"),
    ("--type=gpu-process", "browser: GPU process (draws in software)"),
    ("--type=", "browser: network and other utilities"),
    ("--remote-debugging-pipe", "browser: main process"),
    ("run-driver", "browser: Playwright's driver"),
    ("EncoderActor", "encoder"),
    ("ExplorerActor", "explorer"),
    ("ray::", "Ray: other workers"),
    ("waygraph.cluster.supervisor", "Ray: the process that starts it"),
    ("ray/", "Ray: daemons"),
    ("waygraph", "the command itself"),
)


@dataclass(frozen=True)
class Usage:
    """What one run of a command took."""

    seconds: float
    cpu_seconds: float
    peak_mib: float
    processes: int
    exit_code: int


class Tree:
    """A process and all below it.

    Parameters
    ----------
    root
        The process.
    """

    def __init__(self, root: psutil.Process) -> None:
        self._root = root
        self._cpu: dict[psutil.Process, tuple[str, float]] = {}

    def processes(self) -> list[psutil.Process]:
        """Return all processes that run now, the root first."""
        with suppress(psutil.NoSuchProcess):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def sample_cpu(self) -> None:
        """Read the CPU time of all processes that run now."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._cpu[process] = self._kind(process), times.user + times.system

    def _kind(self, process: psutil.Process) -> str:
        command = " ".join(process.cmdline())
        if not command:  # a zombie: what it was is known from before
            return self._cpu.get(process, ("other", 0.0))[0]
        return next((kind for mark, kind in _KINDS if mark in command), "other")

    def cpu_by_kind(self) -> dict[str, float]:
        """Return the sampled CPU seconds by kind, the largest first."""
        total = defaultdict[str, float](float)
        for kind, seconds in self._cpu.values():
            total[kind] += seconds
        return {kind: round(seconds, 2) for kind, seconds in sorted(total.items(), key=lambda item: -item[1])}

    def cpu_seconds(self) -> float:
        """Return the CPU seconds until now: of the processes that run, and of those that these have waited for."""
        total = 0.0
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def memory_mib(self) -> float:
        """Return the PSS of all processes together."""
        return sum(_pss_kib(each.pid) for each in self.processes()) / 1024


def measured(
    command: Sequence[str], environment: Mapping[str, str], *, output: Path | None = None, folder: Path | None = None
) -> Usage:
    """Run a command to its end.

    Parameters
    ----------
    command
        Its words.
    environment
        Its environment.
    output
        File for what it prints; None drops it.
    folder
        Folder that it runs in; None: this process's.

    Returns
    -------
    Usage
        What it took.

    Raises
    ------
    SystemExit
        If the command fails; with the last lines that it wrote to stderr.
    """
    with tempfile.TemporaryDirectory() as scratch:
        result, errors = Path(scratch, "usage.json"), Path(scratch, "stderr")
        with errors.open("wb") as stderr, (output or Path(os.devnull)).open("wb") as stdout:
            subprocess.run(
                [sys.executable, __file__, str(result), *command],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=folder,
                env=dict(environment),
                check=True,
            )
        usage = Usage(**json.loads(result.read_text()))
        if usage.exit_code:
            last = errors.read_text(errors="replace").splitlines()[-5:]
            raise SystemExit("\n".join([f"{' '.join(command)} ended with {usage.exit_code}", *last]))
        return usage


def become_subreaper() -> None:
    """Make this process inherit the processes below it whose parents end."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def main() -> None:
    """Run the command in argv[2:] and write what it took to the file argv[1]."""
    become_subreaper()
    began = time.monotonic()
    process = subprocess.Popen(sys.argv[2:])
    tree, peak, most, memory_due = Tree(psutil.Process(process.pid)), 0.0, 1, began
    while process.poll() is None:
        tree.sample_cpu()
        most = max(most, len(tree.processes()))
        if (started := time.monotonic()) >= memory_due:
            peak = max(peak, tree.memory_mib())
            memory_due = time.monotonic() + _REST * (time.monotonic() - started)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SAMPLE_SECONDS)
    seconds = time.monotonic() - began
    with suppress(ChildProcessError):  # until none is left
        while True:
            os.wait()
    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = max(waited_for.ru_utime + waited_for.ru_stime, sum(tree.cpu_by_kind().values()))
    usage = Usage(round(seconds, 3), round(cpu, 3), round(peak, 1), most, process.returncode)
    Path(sys.argv[1]).write_text(json.dumps(asdict(usage)))


def _pss_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended, or belongs to another user
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
