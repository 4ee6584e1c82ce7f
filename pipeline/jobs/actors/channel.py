"""Calls between two processes in both directions, over a pair of connected sockets."""

from __future__ import annotations

import asyncio
import itertools
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from waygraph.pipeline.jobs.actors.protocol import ActorDied


class RemoteTraceback(Exception):
    """Traceback of an error in the process that raised it."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call. `actor` is the number of an actor of the coordinator, or None for that of the process."""

    number: int
    actor: int | None
    method: str
    arguments: Sequence[object]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of the call of this number."""

    number: int
    value: object


@dataclass(frozen=True, slots=True)
class CallFailure:
    """The error that the call of this number raised."""

    number: int
    error: BaseException
    traceback: str


class Channel:
    """One end of the connection. Any thread may send; one thread receives.

    Parameters
    ----------
    connection
        The socket.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending, self._changing = threading.Lock(), threading.Lock()
        self._numbers = itertools.count()
        self._pending: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = {}
        self._closed: str | None = None
        """Why it was closed."""

    async def call(self, actor: int | None, method: str, arguments: Sequence[object]) -> Any:  # noqa: ANN401
        """Call a method on the other end and return its result. Raise `ActorDied` if the other end is closed first."""
        loop, number = asyncio.get_running_loop(), next(self._numbers)
        future: asyncio.Future[Any] = loop.create_future()
        with self._changing:
            if self._closed is not None:
                raise ActorDied(self._closed)
            self._pending[number] = loop, future
        try:
            # Not in the event loop: an end that is busy may take long to receive a large message.
            await asyncio.to_thread(self.send, CallRequest(number, actor, method, arguments))
            return await future
        finally:
            self._pending.pop(number, None)

    def send(self, message: object) -> None:
        """Send a message. One to an end that is closed is lost."""
        content = ForkingPickler.dumps(message)
        with self._sending, suppress(OSError):  # the receiving thread notices it too
            self._connection.send_bytes(content)

    def answer(self, call: CallRequest, work: Callable[[], object]) -> None:
        """Do the work of a call and send its result or error."""
        try:
            self.send(CallResult(call.number, work()))
        except BaseException as error:  # noqa: BLE001 - it is raised on the other end
            text = "".join(traceback.format_exception(error))
            try:
                ForkingPickler.loads(ForkingPickler.dumps(error))
            except Exception:  # noqa: BLE001 - some errors cannot be copied
                error = RuntimeError(f"{type(error).__name__}: {error}")
            self.send(CallFailure(call.number, error, text))

    def receive(self, on_call: Callable[[CallRequest], None]) -> None:
        """Receive until the other end is closed: give results to their callers, and calls to `on_call`."""
        while True:
            try:
                content = self._connection.recv_bytes()
            except (EOFError, OSError):
                return
            message = ForkingPickler.loads(content)  # from a process that this one started, or was started by
            if isinstance(message, CallRequest):
                on_call(message)
            else:
                self._resolve(message)

    def close(self, reason: str) -> None:
        """Let all calls fail, pending ones and later ones."""
        with self._changing:
            self._closed = reason
            pending = list(self._pending.values())
        for loop, future in pending:
            _resolve(loop, future, ActorDied(reason))
        with self._sending:
            self._connection.close()

    def _resolve(self, message: CallResult | CallFailure) -> None:
        if (waiting := self._pending.get(message.number)) is None:
            return  # the caller was cancelled
        if isinstance(message, CallFailure):
            message.error.__cause__ = RemoteTraceback(f"\n{message.traceback}")
            _resolve(*waiting, message.error)
        else:
            _resolve(*waiting, message)


def _resolve(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], outcome: CallResult | BaseException) -> None:
    def resolve() -> None:
        if future.done():
            return
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome.value)

    with suppress(RuntimeError):  # the loop has ended, and its callers with it
        loop.call_soon_threadsafe(resolve)
