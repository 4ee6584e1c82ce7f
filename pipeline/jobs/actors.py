"""How are actors started and named? The one place that knows Ray's options."""

from __future__ import annotations

from typing import Any, Literal

import ray

#: Handle of an actor: Ray gives it the methods of the actor's class at run time.
Actor = Any
#: Something that a Ray task returned or will return; awaiting it gives the value.
Ref = Any


def start_actor(
    kind: type,
    *arguments: object,
    cpus: float,
    concurrency: int,
    restarts: int = 0,
    placement: Literal["DEFAULT", "SPREAD"] = "DEFAULT",
) -> Actor:
    """Start an actor of class `kind`.

    Parameters
    ----------
    kind : a plain class.
    arguments : of its constructor.
    cpus : share of a CPU it reserves; it may use more.
    concurrency : calls that run at once, in threads or (when it has async methods) in one event loop.
    restarts : how often Ray restarts it and repeats the calls it was lost with; only for actors without state.
    placement : `SPREAD` to use all machines alike.

    """
    return (
        ray.remote(kind)
        .options(
            num_cpus=cpus,
            max_concurrency=concurrency,
            max_restarts=restarts,
            max_task_retries=restarts,
            scheduling_strategy=placement,
        )
        .remote(*arguments)
    )


def share(cpus: float, most: float) -> float:
    """A share of a CPU in hundredths, at least one of them.

    >>> share(0.333, 0.5), share(3, 0.5), share(0, 1)
    (0.33, 0.5, 0.01)
    """
    return max(0.01, int(100 * min(cpus, most)) / 100)
