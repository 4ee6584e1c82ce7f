"""`Waygraph` and `AsyncWaygraph`: one object that searches maps and walks an agent's page to the states it finds."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

from waygraph.client import requests
from waygraph.client.map_source import AsyncMapApi, AsyncMapSource, MapApi, MapSource, ThreadedMapSource, blocking
from waygraph.client.requests import MapRequest, validate_request
from waygraph.core.errors import EnvironmentMissing
from waygraph.core.schemas import CurrentPage, NavigateAnswer, NavigateRequest, SelectorName

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.sync_api import Page as SyncPage

    from waygraph.sdk.teleport_result import TeleportResult
    from waygraph.sdk.tool_result import ToolResult

T = TypeVar("T")


class AsyncWaygraph(AsyncMapApi):
    """The maps of a service or of a store, for programs with an event loop.

    Parameters
    ----------
    url_or_store
        URL (http or https) of a running service, or folder with maps. A store is read in threads.
    api_key
        API key, for services that require one.

    Examples
    --------
    >>> from waygraph import AsyncWaygraph
    >>> async def go_to_returns(page):
    ...     async with AsyncWaygraph("http://127.0.0.1:8321") as maps:
    ...         found = await maps.navigate("shop.example", "where returns are explained")
    ...         return await maps.teleport(page, "shop.example", found.node_id)

    """

    def __init__(self, url_or_store: str | PathLike[str], api_key: str | None = None) -> None:
        self.source = open_async_source(url_or_store, api_key)

    async def send(self, request: MapRequest[T]) -> T:
        """Answer one request."""
        return await self.source.send(request)

    async def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""
        await self.source.close()

    async def navigate(
        self,
        site: str,
        query: str,
        *,
        intent: str = "",
        current: CurrentPage | None = None,
        select: SelectorName | None = None,
        k: int = 30,
    ) -> NavigateAnswer:
        """Search for a state, choose one candidate and plan the path to it, in one call.

        Parameters
        ----------
        site
            Key of the site.
        query
            The page to find, in plain words.
        intent
            What the agent wants to do there: used to choose among the candidates, not to search.
        current
            The page that the agent is on; `None` starts the path with loading a URL.
        select
            The selector that chooses; `None` uses the default.
        k
            Number of candidates to choose from.

        Returns
        -------
        NavigateAnswer
            The candidates, the chosen one and the path to it.

        Raises
        ------
        NotFound
            If the site or the current state is not in the map.
        InvalidInput
            If a value is out of range, or the selector is not configured.
        """
        request = validate_request(
            NavigateRequest, site=site, query=query, intent=intent, current=current, select=select, k=k
        )
        return await self.send(MapRequest(requests.NAVIGATE, body=request))

    async def teleport(
        self,
        page: Page,
        site: str,
        target: str,
        **options: Any,  # noqa: ANN401 - typed where they are defined
    ) -> TeleportResult:
        """Walk `page` to a state and verify the arrival; the options are those of `waygraph.sdk.teleport.teleport`."""
        from waygraph.sdk.teleport import teleport  # noqa: PLC0415 - imports Playwright, which searching does not need

        return await teleport(page, self.source, site, target, **options)

    async def use_tool(
        self,
        page: Page,
        site: str,
        tool: str,
        arguments: Mapping[str, Any],
        **options: Any,  # noqa: ANN401 - typed where they are defined
    ) -> ToolResult:
        """Use a tool of a site's pages in `page`; the options are those of `waygraph.sdk.use_tool.use_tool`."""
        with _needs_guard():
            from waygraph.sdk.use_tool import use_tool  # noqa: PLC0415 - imports Playwright and the network guard

        return await use_tool(page, self.source, site, tool, arguments, **options)


class Waygraph(MapApi):
    """The maps of a service or of a store.

    `navigate` and the methods of `MapApi` are the blocking forms of the methods of `AsyncWaygraph`.

    Parameters
    ----------
    url_or_store
        URL (http or https) of a running service, or folder with maps.
    api_key
        API key, for services that require one.

    Examples
    --------
    >>> from waygraph import Waygraph
    >>> with Waygraph("http://127.0.0.1:8321") as maps:  # doctest: +SKIP
    ...     found = maps.navigate("shop.example", "where returns are explained")
    ...     print(found.reason, [str(step.action) for step in found.path.steps])

    """

    def __init__(self, url_or_store: str | PathLike[str], api_key: str | None = None) -> None:
        self.source = open_source(url_or_store, api_key)

    @classmethod
    def open(cls, url_or_store: str | PathLike[str], api_key: str | None = None) -> Self:
        """Open a service or a store; the same as calling the class."""
        return cls(url_or_store, api_key)

    def send(self, request: MapRequest[T]) -> T:
        """Answer one request."""
        return self.source.send(request)

    def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""
        self.source.close()

    navigate = blocking(AsyncWaygraph.navigate)

    @overload
    def teleport(
        self,
        page: SyncPage,
        site: str,
        target: str,
        **options: Any,  # noqa: ANN401 - typed where they are defined
    ) -> TeleportResult[SyncPage]: ...

    @overload
    def teleport(
        self,
        page: Page,
        site: str,
        target: str,
        **options: Any,  # noqa: ANN401 - as above
    ) -> Coroutine[Any, Any, TeleportResult]: ...

    def teleport(
        self,
        page: Page | SyncPage,
        site: str,
        target: str,
        **options: Any,
    ) -> TeleportResult[SyncPage] | Coroutine[Any, Any, TeleportResult]:
        """Walk `page` to a state and verify the arrival; the options are those of `waygraph.sdk.teleport.teleport`.

        With a page of Playwright's async API the result is a coroutine to await.
        """
        from waygraph.sdk.teleport import teleport, teleport_sync  # noqa: PLC0415 - imports Playwright

        if type(page).__module__.startswith("playwright.sync_api"):
            return teleport_sync(cast("SyncPage", page), self.source, site, target, **options)
        return teleport(cast("Page", page), self.source, site, target, **options)

    @overload
    def use_tool(
        self,
        page: SyncPage,
        site: str,
        tool: str,
        arguments: Mapping[str, Any],
        **options: Any,  # noqa: ANN401 - typed where they are defined
    ) -> ToolResult[SyncPage]: ...

    @overload
    def use_tool(
        self,
        page: Page,
        site: str,
        tool: str,
        arguments: Mapping[str, Any],
        **options: Any,  # noqa: ANN401 - as above
    ) -> Coroutine[Any, Any, ToolResult]: ...

    def use_tool(
        self,
        page: Page | SyncPage,
        site: str,
        tool: str,
        arguments: Mapping[str, Any],
        **options: Any,
    ) -> ToolResult[SyncPage] | Coroutine[Any, Any, ToolResult]:
        """Use a tool of a site's pages in `page`; the options are those of `waygraph.sdk.use_tool.use_tool`.

        With a page of Playwright's async API the result is a coroutine to await.
        """
        with _needs_guard():
            from waygraph.sdk.use_tool import use_tool, use_tool_sync  # noqa: PLC0415 - as above

        if type(page).__module__.startswith("playwright.sync_api"):
            return use_tool_sync(cast("SyncPage", page), self.source, site, tool, arguments, **options)
        return use_tool(cast("Page", page), self.source, site, tool, arguments, **options)


@contextmanager
def _needs_guard() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise EnvironmentMissing(
            f"use_tool needs the network guard, and it '{error.name}', which is not installed.",
            hint="Run: pip install 'waygraph[index]'",
        ) from error


def open_source(url_or_store: str | PathLike[str], api_key: str | None = None) -> MapSource:
    """Open the service at a URL, or the store in a folder."""
    location = fspath(url_or_store)
    if _is_service(location):
        from waygraph.client.service import ServiceMap  # noqa: PLC0415 - only services need httpx

        return ServiceMap(location, api_key)
    from waygraph.sdk.local import StoreMap  # noqa: PLC0415 - only stores need pyarrow, Qdrant and numpy

    return StoreMap(location)


def open_async_source(url_or_store: str | PathLike[str], api_key: str | None = None) -> AsyncMapSource:
    """Open the service at a URL, or the store in a folder, for an event loop; a store is read in threads."""
    location = fspath(url_or_store)
    if _is_service(location):
        from waygraph.client.service import AsyncServiceMap  # noqa: PLC0415 - only services need httpx

        return AsyncServiceMap(location, api_key)
    return ThreadedMapSource(open_source(location))


def _is_service(location: str) -> bool:
    return location.startswith(("http://", "https://"))
