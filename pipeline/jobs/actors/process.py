"""The process of an actor: it ends when its parent or its driver is gone."""

from __future__ import annotations

import importlib
import logging
import os
import select
import signal
import threading
import time
from contextlib import suppress

import psutil

from waygraph.core.log_records import escape_log_records

log = logging.getLogger(__name__)


def begin_actor() -> None:
    """Prepare the process of an actor: its logs are escaped, and it ends with its parent, as do its own children.

    The parent is the coordinator or Ray's daemon on this machine. Ray lets an actor continue while one of its methods
    runs, also when its daemon has ended. The work is retried elsewhere meanwhile, so both would explore and publish the
    same site. The process is killed instead.
    """
    escape_log_records()
    parent = os.pidfd_open(os.getppid())

    def wait() -> None:
        select.select([parent], [], [])
        end_actor()

    threading.Thread(target=wait, name="exit-with-parent", daemon=True).start()


def imported_class(kind: str) -> type:
    """Return the class that `module:name` names."""
    module, _, name = kind.partition(":")
    found: type = getattr(importlib.import_module(module), name)
    return found


def end_actor() -> None:
    """Kill this process and all below it. A browser that hangs does not notice that its pipe is closed."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
    os.kill(os.getpid(), signal.SIGKILL)


class PollWatchdog:
    """Watchdog that kills this process when it was not polled for some time: it is cut off, or its driver is gone.

    Ray needs minutes to notice on a machine that its head is gone silently. By then the work is retried elsewhere, and
    hosts would be visited from two machines at once.

    Parameters
    ----------
    seconds
        Time without a poll after which the process ends.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._polled_at = time.monotonic()
        threading.Thread(target=self._watch, name="poll-watchdog", daemon=True).start()

    def polled(self) -> None:
        """Record a poll."""
        self._polled_at = time.monotonic()

    def _watch(self) -> None:
        while (left := self._polled_at + self._seconds - time.monotonic()) > 0:
            time.sleep(left)
        log.error("jobs/not_polled no poll for %.0f s: the driver is gone or cut off", self._seconds)
        os.kill(os.getpid(), signal.SIGKILL)
