"""What jobs need of actors: start one, call it, kill it, and learn why a call has no result."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import IO, Any, Literal, Protocol

from waygraph.cluster import ClusterMachine

#: A value, or a reference of one that stays where it was made. An actor that gets it as an argument gets the value.
ObjectRef = Any


class ActorError(Exception):
    """A call of an actor has no result, for another reason than an error that the method raised."""


class ActorDied(ActorError):
    """The process of the actor has ended."""


class MachineDied(ActorDied):
    """The machine of the actor is gone."""


class ActorUnreachable(ActorError):
    """The actor did not answer. It may be alive."""


class ObjectLost(ActorError):
    """An argument of the call was lost with the machine that held it."""


class Actor(Protocol):
    """Handle of an actor. It can be passed to other actors."""

    async def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - the result of the method
        """Call a method and return its result. Raise what it raises, or an `ActorError`.

        A call that is cancelled continues in the actor.
        """
        ...

    async def call_keeping(self, method: str, *arguments: object) -> tuple[Any, ObjectRef]:
        """Call a method that returns a pair. Return its first part, and a reference of the second one."""
        ...

    def tell(self, method: str, *arguments: object) -> None:
        """Call a method and ignore its result."""
        ...

    def kill(self) -> None:
        """Kill the actor. Pending calls fail with `ActorDied`."""
        ...


class ActorSystem(Protocol):
    """Where actors run. It can be passed to actors that start others.

    Attributes
    ----------
    ends_with_coordinator
        Whether all actors end when the coordinator does.
    exports_metrics
        Whether metrics of its processes can be scraped.
    lifeline
        Pipe that reaches its end when the system has ended; None: it does not end before its coordinator.
    """

    ends_with_coordinator: bool
    exports_metrics: bool
    lifeline: IO[bytes] | None

    @property
    def has_ended(self) -> bool:
        """Whether the system has ended, so that calls would only time out."""
        ...

    def machines(self) -> tuple[ClusterMachine, ...]:
        """Return the machines that there are now."""
        ...

    def start(
        self,
        kind: str,
        *arguments: object,
        cpus: float,
        concurrency: int,
        gpus: float = 0,
        placement: Literal["DEFAULT", "SPREAD"] = "DEFAULT",
        avoided: Collection[str] = (),
        is_light: bool = False,
    ) -> Actor:
        """Start an actor. It is not restarted: its caller knows what was lost.

        Parameters
        ----------
        kind
            A plain class, as `module:name`. Where it is not used, it is not imported.
        *arguments
            Arguments of its constructor.
        cpus
            CPUs that it reserves. It may use more.
        concurrency
            Maximal number of concurrent calls, in threads or (with async methods) in one event loop.
        gpus
            GPUs that it reserves, possibly a fraction.
        placement
            `SPREAD` to use all machines evenly.
        avoided
            Ids of machines that it must not run on.
        is_light
            Whether it may run in the event loop of the coordinator: its methods are async, and it holds no pages,
            pictures or models that could end its process.

        Returns
        -------
        Actor
            Its handle.
        """
        ...

    def put(self, value: object) -> ObjectRef:
        """Return a reference of a value that is passed to an actor many times."""
        ...

    def logs(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and end of the logs of processes that end with the coordinator."""
        ...
