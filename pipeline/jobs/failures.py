"""What does an error that crossed process boundaries mean? Ray's wrappers off, waygraph's types back."""

from __future__ import annotations

from ray.exceptions import ObjectLostError, OutOfMemoryError, RayActorError, RayError, RayTaskError, WorkerCrashedError

from waygraph.errors import BrowserFailure, WaygraphError


class WorkerLost(WaygraphError):
    """A process that worked on a site died (killed, out of memory, machine gone); the site is retried elsewhere."""

    slug, title = "worker-lost", "Worker lost"


class EncoderLost(WaygraphError):
    """Encoders die one after the other, whatever they are given; what was encoded is kept for the next run."""

    slug, title = "encoder-lost", "Encoder lost"


#: Errors after which the same work may well succeed.
RETRYABLE = (WorkerLost, BrowserFailure)


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
    if isinstance(cause, RayActorError | WorkerCrashedError | ObjectLostError | OutOfMemoryError):
        result: WaygraphError = WorkerLost(
            f"{where}: the worker process died. {_first_line(cause)}",
            hint="Its logs are in the run's folder. Often memory ran out: try fewer --sites-at-once or --workers.",
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
