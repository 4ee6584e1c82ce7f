"""Actors on a Ray cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Literal

import ray
from ray.exceptions import (
    ActorUnavailableError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from waygraph.cluster import ClusterMachine, PrivateRay, list_machines
from waygraph.pipeline.jobs.actors.process import begin_actor, imported_class
from waygraph.pipeline.jobs.actors.protocol import (
    ActorDied,
    ActorError,
    ActorUnreachable,
    MachineDied,
    ObjectLost,
    ObjectRef,
)

#: Part of Ray's message for an actor that died with its machine; there is no exception type for it.
_NODE_DIED = "its node has died"
#: Maximal size of each log that is kept.
_LOG_BYTES = 200_000


class RayActor:
    """Handle of an actor on Ray.

    Parameters
    ----------
    handle
        Ray's handle.
    """

    def __init__(self, handle: Any) -> None:  # noqa: ANN401 - Ray adds the methods of the actor's class at run time
        self._handle = handle

    async def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401
        """See `Actor.call`."""
        try:
            return await getattr(self._handle, method).remote(*arguments)
        except RayError as error:
            raise to_actor_error(error) from error

    async def call_keeping(self, method: str, *arguments: object) -> tuple[Any, ObjectRef]:
        """See `Actor.call_keeping`. The second part stays in Ray's object store."""
        try:
            first, second = getattr(self._handle, method).options(num_returns=2).remote(*arguments)
            return await first, second
        except RayError as error:
            raise to_actor_error(error) from error

    def tell(self, method: str, *arguments: object) -> None:
        """See `Actor.tell`."""
        getattr(self._handle, method).remote(*arguments)

    def kill(self) -> None:
        """See `Actor.kill`."""
        ray.kill(self._handle)


class RayActors:
    """The connected Ray.

    Parameters
    ----------
    private
        The Ray that was started for this process; None: it is shared, or this process is an actor's.
    """

    exports_metrics = True

    def __init__(self, private: PrivateRay | None = None) -> None:
        self._private = private
        self.ends_with_coordinator = private is not None
        self.lifeline = None if private is None else private.lifeline

    def __reduce__(self) -> tuple[type[RayActors], tuple[()]]:
        """Pickle it for an actor, which needs no more than its own connection."""
        return RayActors, ()

    @property
    def has_ended(self) -> bool:
        """See `ActorSystem.has_ended`."""
        return self._private is not None and self._private.has_ended

    def machines(self) -> tuple[ClusterMachine, ...]:
        """See `ActorSystem.machines`."""
        return list_machines()

    def start(
        self,
        kind: str,
        *arguments: object,
        cpus: float,
        concurrency: int,
        gpus: float = 0,
        placement: Literal["DEFAULT", "SPREAD"] = "DEFAULT",
        avoided: Collection[str] = (),
        is_light: bool = False,  # noqa: ARG002 - every actor has its own process
    ) -> RayActor:
        """See `ActorSystem.start`. GPUs that an actor did not reserve are hidden from it."""
        plain = imported_class(kind)
        kind_on_ray = type(plain.__name__, (_EndsWithRay, plain), {})  # processes are named after the class
        return RayActor(
            ray.remote(kind_on_ray)
            .options(
                num_cpus=cpus,
                num_gpus=gpus,
                max_concurrency=concurrency,
                scheduling_strategy=placement,
                label_selector={"ray.io/node-id": f"!in({','.join(avoided)})"} if avoided else None,
            )
            .remote(*arguments)
        )

    def put(self, value: object) -> ObjectRef:
        """See `ActorSystem.put`."""
        return ray.put(value)

    def logs(self) -> Iterator[tuple[str, bytes]]:
        """See `ActorSystem.logs`. A private Ray deletes its own folder."""
        if self._private is None:
            return
        folder = self._private.logs
        for log in sorted([*folder.glob("worker-*"), *folder.glob("raylet.*")]):
            lines = log.read_bytes()[-_LOG_BYTES:].splitlines(keepends=True)
            # Lines that start with a colon are Ray's marks for its own log reader.
            yield log.name, b"".join(line for line in lines if not line.startswith(b":"))


class _EndsWithRay:
    """Base of an actor's class that prepares its process."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # of the class that this one is combined with
        begin_actor()


def to_actor_error(error: Exception) -> Exception:
    """Return the error that a method raised, or the `ActorError` that says why a call has no result.

    Parameters
    ----------
    error
        An error of a call. Errors that passed several actors are unwrapped.

    Returns
    -------
    Exception
        The error without Ray's wrapping.
    """
    while isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        error = error.cause
    kind: type[ActorError]
    if isinstance(error, ObjectLostError):
        kind = ObjectLost
    elif isinstance(error, RayActorError) and _NODE_DIED in str(error):
        kind = MachineDied
    elif isinstance(error, ActorUnavailableError):
        kind = ActorUnreachable
    elif isinstance(error, RayActorError | WorkerCrashedError | OutOfMemoryError):
        kind = ActorDied
    elif isinstance(error, RayError):
        kind = ActorError
    else:
        return error
    return kind(str(error))
