"""What does an error of a site mean? Which one it was, whether the site is tried again, and whether that settles it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ray.exceptions import (
    ActorUnavailableError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from waygraph.errors import (
    BrowserFailure,
    EncoderMismatch,
    EnvironmentMissing,
    InUse,
    LoggedOut,
    NewerSchema,
    StoreError,
    TermsDiffer,
    WaygraphError,
)


class WorkerLost(WaygraphError):
    """A process that worked on a site died (killed, out of memory, machine gone); the site is retried elsewhere."""

    slug, title = "worker-lost", "Worker lost"


class MachineLost(WorkerLost):
    """A machine of the cluster is gone, or could not be reached: no doing of a site, so it costs none of its tries."""

    slug, title = "machine-lost", "Machine lost"


class CaptureLost(WorkerLost):
    """What was explored was lost with the machine that held it, before it was published; the site is explored again."""

    slug, title = "capture-lost", "Capture lost"


class EncoderLost(WaygraphError):
    """Encoders die one after the other, whatever they are given; what was encoded is kept for the next run."""

    slug, title = "encoder-lost", "Encoder lost"


#: How Ray says that an actor died with its machine; there is no type for it.
_NODE_DIED = "its node has died"

#: Ray takes a machine for dead after five checks that fail, 3 s apart, if nobody told it otherwise: after 15 s when the
#: machine refuses them, after 65 s when it is silent, since each check then takes 10 s.
_VERDICT_SECONDS = 90.0
#: Machines that may be lost under one piece of work, besides the tries that it has.
MOST_MACHINES = 10


@dataclass(frozen=True, slots=True)
class Policy:
    """What follows from an error of a site.

    Attributes
    ----------
    again : when the site is tried again, as long as it has tries left: at once, later (when the other sites had their
        turn, with a growing pause), or never in this call.
    settled : the failure is the site's own, and its outcome. Else something around the site was in the way: it stays
        unfinished, and the next call of the same run tries it again.

    """

    again: Literal["at once", "later", "never"]
    settled: bool


#: By kind of error; of a kind that is not named, its nearest base counts. Kinds that say after how long they may work
#: (`after_s`: a host that does not answer, HTTP 429 and 5xx) are tried again later, whatever is said here.
POLICIES: Mapping[type[WaygraphError], Policy] = {
    WaygraphError: Policy("never", settled=True),  # defects, robots.txt, HTTP 4xx, no HTML, settings that make no sense
    WorkerLost: Policy("at once", settled=True),
    BrowserFailure: Policy("at once", settled=True),
    StoreError: Policy("later", settled=False),  # full, refused, another writer was faster
    InUse: Policy("never", settled=False),
    NewerSchema: Policy("never", settled=False),
    EnvironmentMissing: Policy("never", settled=False),  # no browser, no weights: the same for all sites
    EncoderLost: Policy("never", settled=False),
    LoggedOut: Policy("never", settled=False),  # after another `waygraph login` it works
    TermsDiffer: Policy("never", settled=False),  # the next call may be given what is missing
    EncoderMismatch: Policy("never", settled=False),
}

#: A site that is tried again later waits so long at least, twice as long each time, and never longer than that.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 600.0


def policy_of(error: WaygraphError, *, excused: int = 0) -> Policy:
    """What follows from `error`.

    Parameters
    ----------
    excused : tries of the site that failed of something else, a machine that was lost. What is in use after that, an
        explorer has that was cut off, and lives on until it notices.

    >>> policy_of(BrowserFailure("gone")).again, policy_of(WaygraphError("a bug")).again
    ('at once', 'never')
    >>> policy_of(InUse("in use")).again, policy_of(InUse("in use"), excused=1).again
    ('never', 'later')
    """
    if excused and isinstance(error, InUse):
        return Policy("later", settled=False)
    found = next(POLICIES[kind] for kind in type(error).__mro__ if kind in POLICIES)
    return Policy("later", settled=found.settled) if error.after_s and found.again == "never" else found


def pause_before(error: WaygraphError, failures: int) -> float:
    """Seconds until a site that has failed so often is tried again later.

    >>> [pause_before(StoreError("full"), failures) for failures in (1, 2, 3, 30)]
    [5.0, 10.0, 20.0, 600.0]
    """
    first = max(error.after_s, FIRST_PAUSE_SECONDS)
    return min(LONGEST_PAUSE_SECONDS, first * 2.0 ** min(failures - 1, 20))


async def verdict(error: Exception, ask: Callable[[], Awaitable[object]]) -> Exception:
    """Why a call failed, when Ray knows more of the actor than that it cannot be reached.

    When only a process died Ray says so at once. When its machine is gone that takes until Ray takes the machine for
    dead, and whatever is asked of the actor waits for that.

    Parameters
    ----------
    ask : calls the same actor for something that takes no time.

    """
    if not isinstance(error, ActorUnavailableError):
        return error
    try:
        await asyncio.wait_for(ask(), _VERDICT_SECONDS)
    except RayActorError as later:
        return later
    except (RayError, TimeoutError):
        pass
    return error


def typed(error: BaseException, where: str) -> WaygraphError:
    """Return the `WaygraphError` behind `error`, or one that names what was unexpected and `where`."""
    cause = error
    while True:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        elif isinstance(cause, RayTaskError) and isinstance(cause.cause, BaseException):
            cause = cause.cause
        else:
            break
    if isinstance(cause, WaygraphError):
        return cause
    if isinstance(cause, ObjectLostError):
        result: WaygraphError = CaptureLost(
            f"{where}: what was explored is lost, with the machine that held it.",
            hint="Did a machine of the cluster go away? Run the command again.",
        )
    elif isinstance(cause, RayActorError) and _NODE_DIED in str(cause):
        result = MachineLost(
            f"{where}: the machine that worked on it is gone.",
            hint="It is tried again elsewhere, as long as machines are left.",
        )
    elif isinstance(cause, ActorUnavailableError):
        # When its process alone had died, Ray would have said so, see `verdict`: what was asked for is lost, not it.
        result = MachineLost(
            f"{where}: the machine that worked on it could not be reached for a while.",
            hint="It is tried again. Does the network between the machines break?",
        )
    elif isinstance(cause, RayActorError | WorkerCrashedError | OutOfMemoryError):
        result = WorkerLost(
            f"{where}: the worker process died. {_first_line(cause)}",
            hint="Its logs are in the run's folder. Often memory ran out: try fewer --sites-at-once or --workers.",
        )
    elif isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT}:
        # The store says so itself; browsers, Ray and temporary files need room as well.
        named = f" ({cause.filename})" if cause.filename else ""
        result = StoreError(
            f"{where}: {cause.strerror}{named}.",
            hint="Make room, in the temporary folder too, and run the command again.",
        )
    else:
        kind = "Ray failed" if isinstance(cause, RayError) else "Unexpected error"
        result = WaygraphError(
            f"{where}: {kind}: {type(cause).__name__}: {_first_line(cause)}",
            hint="This is a defect of waygraph or of its environment; the traceback is in the run's folder.",
        )
    result.__cause__ = error
    return result


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else ""
