"""Start Ray actors, and end their processes when their machine or driver is gone."""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Collection
from typing import Any, Literal

import ray

from waygraph.core.log_records import escape_log_records

log = logging.getLogger(__name__)

#: Handle of an actor. Ray adds the methods of the actor's class at run time.
ActorHandle = Any
#: Reference of the result of a Ray task. Awaiting it returns the value.
ObjectRef = Any


def start_actor(
    kind: type,
    *arguments: object,
    cpus: float,
    concurrency: int,
    gpus: float = 0,
    placement: Literal["DEFAULT", "SPREAD"] = "DEFAULT",
    avoided: Collection[str] = (),
) -> ActorHandle:
    """Start an actor. Ray does not restart it: its caller knows what was lost.

    Parameters
    ----------
    kind
        A plain class.
    *arguments
        Arguments of its constructor.
    cpus
        CPUs that it reserves. It may use more.
    concurrency
        Maximal number of concurrent calls, in threads or (with async methods) in one event loop.
    gpus
        GPUs that it reserves, possibly a fraction. It sees no others.
    placement
        `SPREAD` to use all machines evenly.
    avoided
        Ids of machines that it must not run on.

    Returns
    -------
    ActorHandle
        Handle of the actor.
    """
    return (
        ray.remote(kind)
        .options(
            num_cpus=cpus,
            num_gpus=gpus,
            max_concurrency=concurrency,
            scheduling_strategy=placement,
            label_selector={"ray.io/node-id": f"!in({','.join(avoided)})"} if avoided else None,
        )
        .remote(*arguments)
    )


def begin_actor() -> None:
    """Prepare the process of an actor: its logs are escaped, and it ends with Ray.

    Ray lets an actor continue while one of its methods runs, also when Ray's daemon on this machine, the parent of its
    process, has ended. Its work is retried on another machine meanwhile, so both would explore and publish the same
    site. The process is killed instead.
    """
    escape_log_records()
    raylet = os.pidfd_open(os.getppid())

    def wait() -> None:
        select.select([raylet], [], [])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="exit-with-raylet", daemon=True).start()


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


def cpu_share(cpus: float, most: float) -> float:
    """Return a share of a CPU, rounded down to hundredths, at least 0.01.

    >>> cpu_share(0.333, 0.5), cpu_share(3, 0.5), cpu_share(0, 1)
    (0.33, 0.5, 0.01)
    """
    return max(0.01, int(100 * min(cpus, most)) / 100)
