"""Translation of errors of actors into `WaygraphError`s."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

from waygraph.core.errors import StoreError, WaygraphError
from waygraph.pipeline.jobs.actors.protocol import ActorDied, ActorError, ActorUnreachable, MachineDied, ObjectLost
from waygraph.pipeline.jobs.failures import CaptureLost, MachineLost, WorkerLost

#: Ray declares a machine dead after five failed health checks, 3 s apart: after 15 s when the machine refuses them, and
#: after 65 s when it is silent, since each check then takes 10 s.
_MACHINE_DEATH_TIMEOUT_SECONDS = 90.0


async def resolve_actor_error(error: Exception, probe: Callable[[], Awaitable[object]]) -> Exception:
    """Return why a call of an actor failed, once Ray knows more than that the actor cannot be reached.

    Ray reports at once that only the process died. When the machine is gone, Ray reports it after it has declared the
    machine dead, and every call of the actor waits until then.

    Parameters
    ----------
    error
        Error of the failed call.
    probe
        Calls a cheap method of the same actor.

    Returns
    -------
    Exception
        The error of the probe when it says that the actor died, else `error`.
    """
    if not isinstance(error, ActorUnreachable):
        return error
    try:
        await asyncio.wait_for(probe(), _MACHINE_DEATH_TIMEOUT_SECONDS)
    except (ActorDied, ActorUnreachable) as final:
        return final
    except (ActorError, TimeoutError):
        pass
    return error


def to_waygraph_error(error: BaseException, where: str) -> WaygraphError:
    """Convert an error into a `WaygraphError`.

    Parameters
    ----------
    error
        Any error. Exception groups are unwrapped.
    where
        What was done when it was raised, for the message: "Exploring a.example".

    Returns
    -------
    WaygraphError
        The `WaygraphError` behind `error`, or a new one with `error` as its cause.
    """
    cause = _unwrapped(error)
    if isinstance(cause, WaygraphError):
        return cause
    result = _converted(cause, where)
    result.__cause__ = error
    return result


def _unwrapped(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _converted(cause: BaseException, where: str) -> WaygraphError:
    if isinstance(cause, ObjectLost):
        return CaptureLost(
            f"{where}: the exploration is lost with the machine that held it.",
            hint="Did a machine of the cluster go away? Run the command again.",
        )
    if isinstance(cause, MachineDied):
        return MachineLost(
            f"{where}: the machine that worked on it is gone.",
            hint="The work is retried elsewhere while machines are left.",
        )
    if isinstance(cause, ActorUnreachable):
        # If the process had died, Ray would have reported it, see `resolve_actor_error`: the result of the call is
        # lost, not the actor.
        return MachineLost(
            f"{where}: the machine that worked on it was unreachable.",
            hint="The work is retried. Check the network between the machines.",
        )
    if isinstance(cause, ActorDied):
        return WorkerLost(
            f"{where}: the worker process died. {_first_line(cause)}",
            hint="Its logs are in the run's folder. Often memory ran out: try fewer --sites-at-once or --workers.",
        )
    if isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT}:
        # The store raises `StoreError` itself. Browsers, actors and temporary files need disk space as well.
        named = f" ({cause.filename})" if cause.filename else ""
        return StoreError(
            f"{where}: {cause.strerror}{named}.",
            hint="Make room, in the temporary folder too, and run the command again.",
        )
    return WaygraphError(
        f"{where}: Unexpected error: {type(cause).__name__}: {_first_line(cause)}",
        hint="This is a defect of waygraph or of its environment; the traceback is in the run's folder.",
    )


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else ""
