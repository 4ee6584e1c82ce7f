"""How are actors started and named? The one place that knows Ray's options."""

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

log = logging.getLogger(__name__)

#: Handle of an actor: Ray gives it the methods of the actor's class at run time.
Actor = Any
#: Something that a Ray task returned or will return; awaiting it gives the value.
Ref = Any


def start_actor(
    kind: type,
    *arguments: object,
    cpus: float,
    concurrency: int,
    gpus: float = 0,
    placement: Literal["DEFAULT", "SPREAD"] = "DEFAULT",
    avoided: Collection[str] = (),
) -> Actor:
    """Start an actor of class `kind`. When it dies it stays dead: whoever started it knows what was lost.

    Parameters
    ----------
    kind : a plain class.
    arguments : of its constructor.
    cpus : share of a CPU it reserves; it may use more.
    gpus : GPUs it reserves, whole ones or a share of one; it sees no others.
    concurrency : calls that run at once, in threads or (when it has async methods) in one event loop.
    placement : `SPREAD` to use all machines alike.
    avoided : ids of machines that it must not run on.

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


def end_with_ray() -> None:
    """End this process as soon as Ray's daemon on its machine, which is its parent, has ended.

    Ray itself lets an actor go on as long as one of its methods runs. Meanwhile its work is done again on another
    machine, and both would explore and publish the same site.
    """
    parent = os.pidfd_open(os.getppid())

    def wait() -> None:
        select.select([parent], [], [])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="end-with-ray", daemon=True).start()


class EndUnheard:
    """Ends this process when nobody has asked it anything for so long: on a machine that is cut off, or left alone.

    Ray takes minutes to notice on a machine that its head is gone without a word. By then the work is done again
    elsewhere, and hosts would be visited from two places at once.

    Parameters
    ----------
    seconds : without a question.

    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._heard = time.monotonic()
        threading.Thread(target=self._watch, name="end-unheard", daemon=True).start()

    def heard(self) -> None:
        """Somebody asked."""
        self._heard = time.monotonic()

    def _watch(self) -> None:
        while (left := self._heard + self._seconds - time.monotonic()) > 0:
            time.sleep(left)
        log.error("Nobody has asked for %.0f s: whoever started this is gone, or cut off.", self._seconds)
        os.kill(os.getpid(), signal.SIGKILL)


def share(cpus: float, most: float) -> float:
    """A share of a CPU in hundredths, at least one of them.

    >>> share(0.333, 0.5), share(3, 0.5), share(0, 1)
    (0.33, 0.5, 0.01)
    """
    return max(0.01, int(100 * min(cpus, most)) / 100)
