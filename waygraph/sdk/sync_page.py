"""Asynchronous access to pages of Playwright's sync API.

Playwright's sync API runs an event loop in the caller's thread, in a separate greenlet, and switches to it while a call
waits. Code that is written for the async API can run on that loop: `run` starts it there and passes it an `AsyncProxy`
of the page, whose methods are coroutines where those of the async API are. Each call runs in a new greenlet, which is
also how Playwright runs event handlers that make calls: while the call waits, the loop continues.

So one implementation serves both APIs, and the caller's handlers, routes and other pages continue to work meanwhile.
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

from waygraph.core.errors import EnvironmentMissing

if TYPE_CHECKING:
    from playwright.async_api import Page

T = TypeVar("T")

_SYNC_API = "playwright.sync_api"


def run(page: SyncPage, walk: Callable[[Page], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine that calls a page, in the thread that the page belongs to, and return its result.

    Parameters
    ----------
    page
        A page of the sync API.
    walk
        Makes the coroutine from the page's `AsyncProxy`.

    Returns
    -------
    T
        The result of the coroutine.

    Raises
    ------
    EnvironmentMissing
        If this version of Playwright runs coroutines in another way.
    """
    # `_sync` runs the coroutine of every method of the sync API. It is the only part used here that is not public.
    wait_for: Callable[[Coroutine[Any, Any, T]], T] | None = getattr(page, "_sync", None)
    if wait_for is None:
        raise EnvironmentMissing(
            "This version of Playwright does not run coroutines for pages of its sync API.",
            hint="Use a page of its async API.",
        )
    return wait_for(walk(cast("Page", AsyncProxy(page))))


def unwrap(value: object) -> Any:  # noqa: ANN401 - any value
    """Return the sync API's object behind an `AsyncProxy`, and any other value unchanged."""
    return value.wrapped if isinstance(value, AsyncProxy) else value


class AsyncProxy:
    """An object of the sync API with the methods of the class of the same name in the async API.

    Parameters
    ----------
    wrapped
        The object of the sync API.
    """

    def __init__(self, wrapped: object) -> None:
        self.wrapped = wrapped
        self._handlers: dict[tuple[str, Callable[..., object]], Callable[..., object]] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the type of the attribute
        attribute = getattr(self.wrapped, name)
        if not callable(attribute):
            return _wrap(attribute)
        async_class = getattr(async_api, type(self.wrapped).__name__)

        async def call(*args: object, **kwargs: object) -> object:
            return _wrap(await _run_in_greenlet(partial(attribute, *map(unwrap, args), **kwargs)))

        if inspect.iscoroutinefunction(getattr(async_class, name)):
            return call
        return lambda *args: _wrap(attribute(*map(unwrap, args)))

    def on(self, event: str, handler: Callable[..., object]) -> None:
        """Call `handler` on an event, with proxies of its arguments."""

        def handle(*args: object) -> None:
            handler(*map(_wrap, args))

        self._handlers[event, handler] = handle
        cast("Any", self.wrapped).on(event, handle)

    def remove_listener(self, event: str, handler: Callable[..., object]) -> None:
        """Stop calling `handler` on an event."""
        cast("Any", self.wrapped).remove_listener(event, self._handlers.pop((event, handler)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncProxy) and self.wrapped is other.wrapped

    def __hash__(self) -> int:
        return id(self.wrapped)


def _wrap(value: object) -> object:
    if isinstance(value, list):
        return [_wrap(each) for each in value]
    return AsyncProxy(value) if type(value).__module__.startswith(_SYNC_API) else value


async def _run_in_greenlet(call: Callable[[], T]) -> T:
    """Make a blocking call, and let the loop run while it waits."""
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def make() -> None:
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - raised where the call is awaited
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():  # the caller may have been cancelled
                done.set_result(result)

    greenlet(make).switch()
    return await done
