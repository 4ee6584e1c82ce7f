"""DevTools sessions for frames and workers that run in their own processes, inside the session of their page."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

log = logging.getLogger(__name__)

#: Timeout of a command to a target. Nothing else waits for the target meanwhile.
_COMMAND_TIMEOUT_S = 15.0

#: Attach to frames and workers that run in other processes than their page, and pause them until they are guarded.
_AUTO_ATTACH = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": False,
    "filter": [{"type": "iframe"}, {"type": "worker"}],
}

EventHandler = Callable[["DevToolsSession", str, Mapping[str, Any]], None]


class DevToolsSession(Protocol):
    """A DevTools session: one of Playwright, or a child session inside it."""

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - a protocol response
        """Send a command and return the response; `PlaywrightError` if the target rejects it or is gone."""
        ...


class ChildSession:
    """Session with a child target; its messages travel inside those of the parent session (`Target` domain).

    Parameters
    ----------
    parent
        The session that carries the messages.
    session_id
        Id of this session in the parent's messages.
    target
        `targetInfo` of the DevTools event that announced the target.
    """

    def __init__(self, parent: DevToolsSession, session_id: str, target: Mapping[str, Any]) -> None:
        self._parent = parent
        self._id = session_id
        self.kind: str = target["type"]
        self.url: str = target["url"].partition("#")[0]
        self._numbers = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self.is_gone = False

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - a protocol response
        """Send a command to the target, see `DevToolsSession.send`."""
        number = next(self._numbers)
        response = self._pending[number] = asyncio.get_running_loop().create_future()
        message = json.dumps({"id": number, "method": method, "params": params or {}})
        try:
            async with asyncio.timeout(_COMMAND_TIMEOUT_S):
                await self._parent.send("Target.sendMessageToTarget", {"sessionId": self._id, "message": message})
                return await response
        except TimeoutError as error:
            raise PlaywrightError(f"{method}: a {self.kind} does not respond") from error
        finally:
            self._pending.pop(number, None)
            if not response.cancel() and not response.cancelled():
                response.exception()  # retrieve it, also if sending failed: asyncio logs exceptions never retrieved

    def receive(self, message: str) -> tuple[str, Mapping[str, Any]] | None:
        """Process a message of the target: a response completes its command, an event is returned."""
        content = json.loads(message)
        if "id" not in content:
            return content["method"], content["params"]
        response = self._pending.get(content["id"])
        if response is not None and not response.done():
            if "error" in content:
                response.set_exception(PlaywrightError(content["error"]["message"]))
            else:
                response.set_result(content["result"])
        return None

    def mark_gone(self) -> None:
        """Fail all pending commands, because the target is gone."""
        self.is_gone = True
        for response in self._pending.values():
            if not response.done():
                response.set_exception(PlaywrightError(f"The {self.kind} is gone"))


class TargetTree:
    """All targets below one page. Each new target is paused, passed to `prepare`, and then started.

    Parameters
    ----------
    session
        The DevTools session of the page.
    prepare
        Guards a new target.
    may_run
        Called for a target that could not be guarded. Unless it returns True, the target stays paused until its page is
        left.
    on_event
        Called for every event of every target below the page.
    spawn
        Runs an awaitable in the background.
    """

    def __init__(
        self,
        session: CDPSession,
        *,
        prepare: Callable[[ChildSession], Awaitable[None]],
        may_run: Callable[[ChildSession], bool],
        on_event: EventHandler,
        spawn: Callable[[Awaitable[None]], None],
    ) -> None:
        self._session = session
        self._prepare = prepare
        self._may_run = may_run
        self._on_event = on_event
        self._spawn = spawn
        self._children: dict[str, ChildSession] = {}
        self._closed = False

    async def watch(self) -> None:
        """Start attaching to targets below the page."""
        for method in ("Target.attachedToTarget", "Target.detachedFromTarget", "Target.receivedMessageFromTarget"):
            self._session.on(method, lambda params, method=method: self._dispatch(self._session, method, params))
        self._session.on("close", lambda _: self._close())
        await self._session.send("Target.setAutoAttach", _AUTO_ATTACH)

    def _close(self) -> None:
        self._closed = True

    def has_worker(self, url: str) -> bool:
        """Whether a worker below the page runs the script at this address."""
        return any(child.kind == "worker" and child.url == url for child in self._children.values())

    def _dispatch(self, source: DevToolsSession, method: str, params: Mapping[str, Any]) -> None:
        if method == "Target.attachedToTarget":
            child = ChildSession(source, params["sessionId"], params["targetInfo"])
            self._children[params["sessionId"]] = child
            self._spawn(self._start(child))
        elif method == "Target.detachedFromTarget":
            gone = self._children.pop(params["sessionId"], None)
            if gone is not None:
                gone.mark_gone()
        elif method == "Target.receivedMessageFromTarget":
            sender = self._children.get(params["sessionId"])
            event = sender.receive(params["message"]) if sender else None
            if sender and event:
                self._dispatch(sender, *event)
        else:
            self._on_event(source, method, params)

    async def _start(self, child: ChildSession) -> None:
        try:
            # Guarding comes first: later commands may take effect late.
            await self._prepare(child)
            await child.send("Target.setAutoAttach", _AUTO_ATTACH)
        except PlaywrightError as error:
            if child.is_gone or self._closed:
                log.debug("guard/target_gone %s: %s", child.kind, error)
                return
            log.warning("guard/unguarded %s %s is not started: %s", child.kind, child.url, error)
            if not self._may_run(child):
                return
        try:
            await child.send("Runtime.runIfWaitingForDebugger")
        except PlaywrightError as error:
            log.debug("guard/target_gone %s: %s", child.kind, error)
