"""How are frames and workers in processes of their own reached? By DevTools sessions inside the page's session."""

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

#: A target waits this long for an answer of its process; nobody waits for the target.
_PATIENCE_S = 15.0

#: Frames and workers that belong to a page but run elsewhere; they wait until they are guarded.
_AUTO_ATTACH = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": False,
    "filter": [{"type": "iframe"}, {"type": "worker"}],
}

EventHandler = Callable[["Session", str, Mapping[str, Any]], None]


class Session(Protocol):
    """A DevTools session: Playwright's own, or one inside of it."""

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - a protocol answer
        """Send a command, return its answer; `PlaywrightError` when the target refuses it or is gone."""
        ...


class ChildSession:
    """A session with a target of its own, whose messages travel inside those of its parent (`Target` domain)."""

    def __init__(self, parent: Session, session_id: str, target: Mapping[str, Any]) -> None:
        self._parent = parent
        self._id = session_id
        self.kind: str = target["type"]
        self.url: str = target["url"].partition("#")[0]
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.gone = False

    async def send(self, method: str, params: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - a protocol answer
        """Send a command to the target, see `Session.send`."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = json.dumps({"id": number, "method": method, "params": params or {}})
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._parent.send("Target.sendMessageToTarget", {"sessionId": self._id, "message": message})
                return await answer
        except TimeoutError as error:
            raise PlaywrightError(f"{method}: a {self.kind} gave no answer") from error
        finally:
            self._waiting.pop(number, None)
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # looked at, even when sending had failed before

    def receive(self, message: str) -> tuple[str, Mapping[str, Any]] | None:
        """Take a message of the target: an answer goes to who waits for it, an event is returned."""
        content = json.loads(message)
        if "id" not in content:
            return content["method"], content["params"]
        waiting = self._waiting.get(content["id"])
        if waiting is not None and not waiting.done():
            if "error" in content:
                waiting.set_exception(PlaywrightError(content["error"]["message"]))
            else:
                waiting.set_result(content["result"])
        return None

    def detached(self) -> None:
        """The target is gone: nobody waits for it any longer."""
        self.gone = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(PlaywrightError(f"The {self.kind} is gone"))


class TargetTree:
    """All targets below one page. Each is given to `prepare` while it waits, then set going.

    Parameters
    ----------
    prepare : guards a new target.
    may_run : asked about a target that could not be guarded; without a yes it goes on waiting, until its page is left.
    on_event : gets every event of every target below the page.
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
        """Attach to targets below the page from now on."""
        for method in ("Target.attachedToTarget", "Target.detachedFromTarget", "Target.receivedMessageFromTarget"):
            self._session.on(method, lambda params, method=method: self._dispatch(self._session, method, params))
        self._session.on("close", lambda _: self._close())
        await self._session.send("Target.setAutoAttach", _AUTO_ATTACH)

    def _close(self) -> None:
        self._closed = True

    def has_worker(self, url: str) -> bool:
        """Whether a worker below the page runs the script at this address."""
        return any(child.kind == "worker" and child.url == url for child in self._children.values())

    def _dispatch(self, source: Session, method: str, params: Mapping[str, Any]) -> None:
        if method == "Target.attachedToTarget":
            child = ChildSession(source, params["sessionId"], params["targetInfo"])
            self._children[params["sessionId"]] = child
            self._spawn(self._start(child))
        elif method == "Target.detachedFromTarget":
            gone = self._children.pop(params["sessionId"], None)
            if gone is not None:
                gone.detached()
        elif method == "Target.receivedMessageFromTarget":
            sender = self._children.get(params["sessionId"])
            event = sender.receive(params["message"]) if sender else None
            if sender and event:
                self._dispatch(sender, *event)
        else:
            self._on_event(source, method, params)

    async def _start(self, child: ChildSession) -> None:
        try:
            # First what guards it: what comes after may be late.
            await self._prepare(child)
            await child.send("Target.setAutoAttach", _AUTO_ATTACH)
        except PlaywrightError as error:
            if child.gone or self._closed:
                log.debug("guard/target_gone %s: %s", child.kind, error)
                return
            log.warning("guard/unguarded %s %s is not set going: %s", child.kind, child.url, error)
            if not self._may_run(child):
                return
        try:
            await child.send("Runtime.runIfWaitingForDebugger")
        except PlaywrightError as error:
            log.debug("guard/target_gone %s: %s", child.kind, error)
