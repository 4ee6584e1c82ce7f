"""CPU time of this process and all its descendants, running or ended, by kind of process.

Linux only, read from /proc. The time of an ended process is added to the parent that waited for it: renderers
are forked by Chromium's zygote, so their time is added to the zygote. Nothing is missed between two readings if the
browser lives from one to the other. The resolution is one clock tick (10 ms) per process.
"""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import psutil

from waygraph.pipeline.browser.process.process_tree import command_line, descendants

#: Of /proc/PID/stat, counted from the state: own time in user and kernel mode, and that of waited-for children.
_OWN, _CHILDREN = (11, 12), (13, 14)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_KINDS = {
    "--type=renderer": "renderer",
    "--type=gpu-process": "gpu",
    "--type=utility": "network",
    "--type=zygote": "zygote",
    "run-driver": "driver",
    "bench.pages": "site",
    "--remote-debugging-pipe": "browser",
}


def cpu_by_kind() -> dict[str, float]:
    """Seconds of CPU time used until now; kinds are those of `_KINDS`, `python` for this process, and `other`."""
    ourselves = psutil.Process()
    used = defaultdict[str, float](float)
    for each in descendants([ourselves]) - {ourselves}:
        kind = kind_of(each)
        own, ended = _seconds(each.pid)
        used[kind] += own
        used["renderer" if kind == "zygote" else kind] += ended
    of_us = resource.getrusage(resource.RUSAGE_SELF)
    used["python"] = of_us.ru_utime + of_us.ru_stime
    return used


def used_since(before: Mapping[str, float]) -> dict[str, float]:
    """Seconds of CPU time used since `cpu_by_kind` gave `before`; kinds that used none are left out."""
    spent = {kind: seconds - before.get(kind, 0.0) for kind, seconds in cpu_by_kind().items()}
    return {kind: seconds for kind, seconds in spent.items() if seconds > 0}


def kind_of(each: psutil.Process) -> str:
    """Return the kind of a child process."""
    command = " ".join(command_line(each))
    return next((kind for mark, kind in _KINDS.items() if mark in command), "other")


def _seconds(pid: int) -> tuple[float, float]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended: its parent has its CPU time
        return 0.0, 0.0
    return tuple(sum(int(fields[i]) for i in places) * _TICK_S for places in (_OWN, _CHILDREN))  # type: ignore[return-value]
