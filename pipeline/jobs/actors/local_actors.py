"""Actors on this machine without Ray: processes below the coordinator, and light actors in its event loop."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Literal

import psutil

from waygraph.cluster import ClusterMachine
from waygraph.core.locked_folders import locked_folder
from waygraph.pipeline.browser.process.process_tree import descendants, kill
from waygraph.pipeline.jobs.actors.channel import CallRequest, Channel
from waygraph.pipeline.jobs.actors.local_process import ActorOfCoordinator
from waygraph.pipeline.jobs.actors.process import imported_class
from waygraph.pipeline.jobs.actors.protocol import ActorDied, ObjectRef

#: What the process of an actor runs, with the import path of this process: modules are found alike in both.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[3])
from waygraph.pipeline.jobs.actors.local_process import main
main(int(sys.argv[2]))
"""
#: Environment variable that marks all processes below an actor. Those that it leaves when it is killed are found by it,
#: as build servers find what a build has left.
_MARK = "WAYGRAPH_ACTOR"
_CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")
#: Maximal size of each log that is kept.
_LOG_BYTES = 200_000
#: Time for killed processes to end.
_END_SECONDS = 5.0
#: Rounds in which processes that an actor left are killed.
_KILL_ROUNDS = 3
#: Time to wait at most for the end of an actor and of all that it left.
_MAX_WAIT_SECONDS = (_KILL_ROUNDS + 2) * _END_SECONDS


def this_machine() -> ClusterMachine:
    """Return the CPUs and GPUs that this process may use."""
    cpus = float(len(os.sched_getaffinity(0)))
    with suppress(OSError, ValueError):  # no control group, or no limit ("max")
        quota, period = _CPU_LIMIT.read_text().split()
        cpus = min(cpus, max(1.0, float(quota) / float(period)))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        gpus = sum(path.name.removeprefix("nvidia").isdigit() for path in Path("/dev").glob("nvidia*"))
    else:
        gpus = len([device for device in visible.split(",") if device not in {"", "-1"}])
    return ClusterMachine("", cpus, float(gpus))


class LocalActor:
    """Handle of an actor in a process below this one.

    Parameters
    ----------
    kind
        Its class.
    arguments
        Arguments of its constructor.
    concurrency
        Maximal number of concurrent calls.
    folder
        Folder for its log and temporary files.
    lock
        File descriptor that marks the folder as in use.
    on_call
        Called, in a thread, with calls of actors of the coordinator.
    """

    def __init__(
        self,
        kind: str,
        arguments: tuple[object, ...],
        concurrency: int,
        *,
        folder: Path,
        lock: int,
        on_call: Callable[[Channel, CallRequest], None],
    ) -> None:
        name = kind.partition(":")[2]
        self._mark = secrets.token_hex(8)
        self.log = folder / f"{name}-{self._mark}.log"
        ours, theirs = socket.socketpair()
        with ours, theirs, self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this Python, our own program
                [sys.executable, "-P", "-c", _PROGRAM, name, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    "OMP_NUM_THREADS": "1",  # as in Ray's actors: an encoder sets its threads itself
                    **os.environ,
                    _MARK: self._mark,
                    "TMPDIR": str(folder),  # files that a killed process leaves go with the folder
                },
                pass_fds=(theirs.fileno(), lock),
                start_new_session=True,  # Ctrl-C reaches the coordinator only, which ends the run in order
            )
            connection = Connection(ours.detach())
        self._channel = Channel(connection)
        with suppress(OSError):  # it died at once
            connection.send((kind, arguments, concurrency))
        self._thread = threading.Thread(target=self._receive, args=(on_call,), name=f"receive-{name}", daemon=True)
        self._thread.start()

    async def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401
        """See `Actor.call`."""
        return await self._channel.call(None, method, arguments)

    async def call_keeping(self, method: str, *arguments: object) -> tuple[Any, ObjectRef]:
        """See `Actor.call_keeping`. The second part is moved to this process."""
        first, second = await self.call(method, *arguments)
        return first, second

    def tell(self, method: str, *arguments: object) -> None:
        """See `Actor.tell`."""
        self._channel.send(CallRequest(-1, None, method, arguments))

    def kill(self) -> None:
        """See `Actor.kill`."""
        self._process.kill()

    def wait(self) -> None:
        """Wait until the process, which was killed, and all below it have ended; not for one that cannot be killed."""
        self._thread.join(_MAX_WAIT_SECONDS)

    def _receive(self, on_call: Callable[[Channel, CallRequest], None]) -> None:
        try:
            self._channel.receive(partial(on_call, self._channel))
        finally:
            try:
                status = self._end()
                _kill_marked(self._mark)
            finally:
                self._channel.close(_reason(status, self.log))

    def _end(self) -> int | None:
        """Return the exit status of the process, which is killed if it still runs; None: it cannot be killed."""
        for _ in range(2):
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(_END_SECONDS)
            self._process.kill()
        return None


class UnstartedActor:
    """Handle of an actor whose process could not be started: memory, processes or room for its log ran out.

    Parameters
    ----------
    reason
        Why.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401, ARG002
        """See `Actor.call`."""
        raise ActorDied(self._reason)

    async def call_keeping(self, method: str, *arguments: object) -> tuple[Any, ObjectRef]:  # noqa: ARG002
        """See `Actor.call_keeping`."""
        raise ActorDied(self._reason)

    def tell(self, method: str, *arguments: object) -> None:
        """See `Actor.tell`."""

    def kill(self) -> None:
        """See `Actor.kill`."""


class LightActor:
    """Handle of an actor in the event loop of the coordinator.

    Parameters
    ----------
    actor
        The object. Its methods are async.
    number
        Its number, by which other processes call it.
    """

    def __init__(self, actor: object, number: int) -> None:
        self._actor = actor
        self._number = number
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_killed = False

    def __reduce__(self) -> tuple[type[ActorOfCoordinator], tuple[int]]:
        """Pickle it for an actor in another process."""
        return ActorOfCoordinator, (self._number,)

    async def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401
        """See `Actor.call`."""
        if self._is_killed:
            raise ActorDied("It was killed.")
        task = asyncio.ensure_future(getattr(self._actor, method)(*arguments))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        await asyncio.wait({task})
        if task.cancelled():
            raise ActorDied("It was killed.")
        return task.result()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieve it, since the caller may be cancelled

    async def call_keeping(self, method: str, *arguments: object) -> tuple[Any, ObjectRef]:
        """See `Actor.call_keeping`."""
        first, second = await self.call(method, *arguments)
        return first, second

    def tell(self, method: str, *arguments: object) -> None:
        """See `Actor.tell`."""
        self._tasks.add(task := asyncio.ensure_future(self.call(method, *arguments)))
        task.add_done_callback(self._forget)

    def kill(self) -> None:
        """See `Actor.kill`."""
        self._is_killed = True
        for task in self._tasks:
            task.cancel()


class LocalActors:
    """Actors below this process. A captured site and its vectors are in this process while it is published.

    Parameters
    ----------
    folder
        Folder for logs and temporary files.
    lock
        File descriptor that marks the folder as in use.
    """

    ends_with_coordinator = True
    exports_metrics = False
    lifeline: IO[bytes] | None = None
    has_ended = False

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock
        self._started: list[LocalActor] = []
        self._light: list[tuple[LightActor, asyncio.AbstractEventLoop]] = []

    def machines(self) -> tuple[ClusterMachine, ...]:
        """See `ActorSystem.machines`. Actors share one GPU: nothing here says which of several each may use."""
        machine = this_machine()
        return (replace(machine, gpus=min(1.0, machine.gpus)),)

    def start(
        self,
        kind: str,
        *arguments: object,
        cpus: float,  # noqa: ARG002 - the system divides the CPUs
        concurrency: int,
        gpus: float = 0,  # noqa: ARG002
        placement: Literal["DEFAULT", "SPREAD"] = "DEFAULT",  # noqa: ARG002
        avoided: Collection[str] = (),  # noqa: ARG002
        is_light: bool = False,
    ) -> LocalActor | LightActor | UnstartedActor:
        """See `ActorSystem.start`. Call it in the event loop of the coordinator."""
        if is_light:
            light = LightActor(imported_class(kind)(*arguments), len(self._light))
            self._light.append((light, asyncio.get_running_loop()))
            return light
        try:
            actor = LocalActor(
                kind, arguments, concurrency, folder=self._folder, lock=self._lock, on_call=self._call_light_actor
            )
        except OSError as error:  # callers expect it from calls, as of an actor that died
            return UnstartedActor(f"Its process could not be started: {error}.")
        self._started.append(actor)
        return actor

    def _call_light_actor(self, channel: Channel, call: CallRequest) -> None:
        """Begin a call that came from another process."""
        actor, loop = self._light[call.actor or 0]
        work = actor.call(call.method, *call.arguments)
        try:
            future = asyncio.run_coroutine_threadsafe(work, loop)
        except RuntimeError:  # the loop has ended; so will the caller
            work.close()
        else:
            future.add_done_callback(lambda done: _answer(loop, channel, call, done))

    def put(self, value: object) -> ObjectRef:
        """See `ActorSystem.put`."""
        return value

    def logs(self) -> Iterator[tuple[str, bytes]]:
        """See `ActorSystem.logs`."""
        for actor in self._started:
            yield actor.log.name, actor.log.read_bytes()[-_LOG_BYTES:]

    def close(self) -> None:
        """Kill all actors and wait for their end."""
        for actor in self._started:
            actor.kill()
        for actor in self._started:
            actor.wait()


@contextmanager
def local_actors() -> Iterator[LocalActors]:
    """Run actors on this machine. They and what they started end with the block, or with this process.

    Yields
    ------
    LocalActors
        The actors.

    Raises
    ------
    EnvironmentMissing
        If there is no temporary folder.
    """
    with locked_folder(tempfile.gettempdir(), "wg-run-") as (folder, lock):
        actors = LocalActors(folder, lock)
        try:
            yield actors
        finally:
            actors.close()


def _answer(loop: asyncio.AbstractEventLoop, channel: Channel, call: CallRequest, done: Future[Any]) -> None:
    """Send the result of a light actor from a thread of its own, since the receiver may be busy.

    This runs in the event loop, or in the thread that received the call if the result is there already.
    """
    with suppress(RuntimeError):  # the loop has ended; so will the caller
        loop.call_soon_threadsafe(loop.run_in_executor, None, channel.answer, call, done.result)


def _kill_marked(mark: str) -> None:
    """Kill all processes that an actor left, and those below them: some of a browser's hide their environment."""
    for _ in range(_KILL_ROUNDS):
        left = [process for process in psutil.process_iter() if _environment(process).get(_MARK) == mark]
        if not left:
            return
        # Its parent may be a process that collects it seconds later, or never: a zombie is not waited for.
        asyncio.run(kill(descendants(left), timeout_s=_END_SECONDS))


def _environment(process: psutil.Process) -> Mapping[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):  # ended, or of another user
        return {}


def _reason(status: int | None, log: Path) -> str:
    if status is None:
        return "It hangs and cannot be killed."
    if status < 0:
        with suppress(ValueError):  # a signal without a name
            return f"It was ended by {signal.Signals(-status).name}."
    with suppress(OSError, IndexError):
        return log.read_text(errors="replace").splitlines()[-1]
    return f"It ended with exit code {status}."
