"""The process of an actor that `local_actors` starts: it answers calls until its parent ends it."""

from __future__ import annotations

import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from waygraph.pipeline.jobs.actors.channel import CallRequest, Channel
from waygraph.pipeline.jobs.actors.process import begin_actor, end_actor, imported_class

#: The kernel ends this process and its browser before any other when memory runs out, as it does workers of Ray.
_OOM_SCORE = "1000"
_to_coordinator: list[Channel] = []


class ActorOfCoordinator:
    """Handle of an actor in the event loop of the coordinator.

    Parameters
    ----------
    number
        Its number.
    """

    def __init__(self, number: int) -> None:
        self._number = number

    async def call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401
        """See `Actor.call`."""
        return await _to_coordinator[0].call(self._number, method, arguments)


def main(socket: int) -> None:
    """Be an actor. Its class, the arguments of its constructor and its number of threads are the first message.

    Parameters
    ----------
    socket
        File descriptor of the socket to the coordinator.
    """
    begin_actor()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    connection = Connection(socket)
    channel = Channel(connection)
    _to_coordinator.append(channel)
    kind, arguments, concurrency = connection.recv()
    actor = imported_class(kind)(*arguments)
    threads = ThreadPoolExecutor(concurrency, thread_name_prefix="call")

    def begin(call: CallRequest) -> None:
        threads.submit(channel.answer, call, partial(getattr(actor, call.method), *call.arguments))

    try:
        channel.receive(begin)
    except Exception:
        traceback.print_exc()  # the last line of the log says why the actor died
        raise
    finally:
        end_actor()  # the coordinator has ended, or gets no answers: nobody waits for what the threads do
