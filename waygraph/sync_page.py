"""How is a page of Playwright's sync API walked by code that awaits? Awaited calls, each in a greenlet of its own.

Playwright's sync API keeps an event loop in the caller's thread, in a greenlet of its own, and gives it control while a
call waits. What is written for the async API can run on that very loop: `run` starts it there, and `Awaited` lends it
the page, with methods to be awaited where the async API has them. Each such call is made in a new greenlet, which is
how Playwright itself runs handlers of events that make calls: while it waits, the loop goes on.

So there is one walk for both APIs, and handlers, routes and other pages of the caller go on working meanwhile.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from greenlet import greenlet
from playwright import async_api
from playwright.sync_api import Page as SyncPage

from waygraph.errors import EnvironmentMissing

if TYPE_CHECKING:
    from playwright.async_api import Page

T = TypeVar("T")

_SYNC_API = "playwright.sync_api"


def run(page: SyncPage, walk: Callable[[Page], Coroutine[Any, Any, T]]) -> T:
    """Run what awaits calls of a page, in the thread that the page belongs to, and return what it returns.

    Raises
    ------
    EnvironmentMissing
        When this version of Playwright works in another way.
    """
    # How every method of the sync API runs its coroutine; the one thing here that is not Playwright's public API.
    wait_for: Callable[[Coroutine[Any, Any, T]], T] | None = getattr(page, "_sync", None)
    if wait_for is None:
        raise EnvironmentMissing(
            "This version of Playwright does not run coroutines for pages of its sync API.",
            hint="Use a page of its async API.",
        )
    return wait_for(walk(cast("Page", Awaited(page))))


def plain(given: object) -> Any:  # noqa: ANN401 - whatever it is
    """The sync API's own object behind one that is `Awaited`; anything else as it is."""
    return given.it if isinstance(given, Awaited) else given


class Awaited:
    """An object of the sync API with the methods of its namesake in the async API.

    Attributes
    ----------
    it : the object itself.
    """

    def __init__(self, it: object) -> None:
        self.it = it
        self._handlers: dict[tuple[str, Callable[..., object]], Callable[..., object]] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the object has it
        found = getattr(self.it, name)
        if not callable(found):
            return _awaited(found)
        namesake = getattr(async_api, type(self.it).__name__)

        async def call(*arguments: object, **named: object) -> object:
            given = [plain(each) for each in arguments]
            return _awaited(await _in_greenlet(partial(found, *given, **named)))

        if inspect.iscoroutinefunction(getattr(namesake, name)):
            return call
        return lambda *arguments: _awaited(found(*map(plain, arguments)))

    def on(self, event: str, handler: Callable[..., object]) -> None:
        """Call `handler` when something happens, with objects that are `Awaited`, too."""

        def handle(*told: object) -> None:
            handler(*map(_awaited, told))

        self._handlers[event, handler] = handle
        cast("Any", self.it).on(event, handle)

    def remove_listener(self, event: str, handler: Callable[..., object]) -> None:
        """Call `handler` no more."""
        cast("Any", self.it).remove_listener(event, self._handlers.pop((event, handler)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Awaited) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


def _awaited(given: object) -> object:
    if isinstance(given, list):
        return [_awaited(each) for each in given]
    return Awaited(given) if type(given).__module__.startswith(_SYNC_API) else given


async def _in_greenlet(call: Callable[[], T]) -> T:
    """Make a call that blocks, and give the loop control while it waits."""
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def make() -> None:
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - it is raised where the call is awaited
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():  # who gave up waiting wants no answer
                done.set_result(result)

    greenlet(make).switch()
    return await done
