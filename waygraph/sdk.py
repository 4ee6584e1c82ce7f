"""What does a Python program use? `Waygraph`: one object that asks for states and walks an agent's page to them."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self, cast, overload

from waygraph.schemas import (
    AvoidedStep,
    BatchSearchAnswer,
    CurrentPage,
    FeedbackAnswer,
    Filter,
    LocateAnswer,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SelectorName,
    SiteDetail,
    SiteSummary,
    WalkedStep,
)
from waygraph.source import AsyncMapSource, InThreads, MapSource

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.sync_api import Page as SyncPage

    from waygraph.teleport import TeleportResult


class Waygraph:
    """The maps of a service or of a store, and the way to the states they hold.

    Parameters
    ----------
    url_or_store : an http(s) URL of a running service, or a folder with maps.
    api_key : for services that ask for one.

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

    def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        return self.source.sites()

    def site(self, key: str) -> SiteDetail:
        """One site."""
        return self.source.site(key)

    def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all; `where` leaves states out."""
        return self.source.search(site, query, k, where)

    def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """The same for several questions at once."""
        return self.source.search_batch(site, queries, k, where)

    def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        return self.source.locate(site, url, structure, features)

    def path(
        self,
        site: str,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
        others: int = 0,
    ) -> PathAnswer:
        """The cheapest known way to a state; `source=None` starts by loading a URL; `others`: so many further ways."""
        return self.source.path(site, source, target, allow_goto=allow_goto, avoid=avoid, others=others)

    def navigate(
        self,
        site: str,
        query: str,
        *,
        intent: str = "",
        current: CurrentPage | None = None,
        select: SelectorName | None = None,
        k: int = 30,
    ) -> NavigateAnswer:
        """Find the state that is meant, and the way to it from the current page, in one call."""
        wanted = _wanted(site=site, query=query, intent=intent, current=current, select=select, k=k)
        return self.source.navigate(wanted)

    def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Report how steps of paths worked; `teleport` does it by itself."""
        return self.source.feedback(site, walked)

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it."""
        return self.source.node(site, node_id)

    def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return self.source.screenshot(site, node_id)

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
        """Walk `page` to a state and check the arrival; options are those of `waygraph.teleport.teleport`.

        With a page of Playwright's async API, await it.
        """
        from waygraph.teleport import teleport, teleport_sync  # noqa: PLC0415 - needs Playwright, asking does not

        if type(page).__module__.startswith("playwright.sync_api"):
            return teleport_sync(cast("SyncPage", page), self.source, site, target, **options)
        return teleport(cast("Page", page), self.source, site, target, **options)

    def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncWaygraph:
    """`Waygraph` for programs with an event loop: every call is awaited.

    Examples
    --------
    >>> from waygraph import AsyncWaygraph
    >>> async def there(page):
    ...     async with AsyncWaygraph("http://127.0.0.1:8321") as maps:
    ...         found = await maps.navigate("shop.example", "where returns are explained")
    ...         return await maps.teleport(page, "shop.example", found.node_id)

    """

    def __init__(self, url_or_store: str | PathLike[str], api_key: str | None = None) -> None:
        self.source = open_async_source(url_or_store, api_key)

    async def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        return await self.source.sites()

    async def site(self, key: str) -> SiteDetail:
        """One site."""
        return await self.source.site(key)

    async def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all; `where` leaves states out."""
        return await self.source.search(site, query, k, where)

    async def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """The same for several questions at once."""
        return await self.source.search_batch(site, queries, k, where)

    async def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        return await self.source.locate(site, url, structure, features)

    async def path(
        self,
        site: str,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
        others: int = 0,
    ) -> PathAnswer:
        """The cheapest known way to a state; `source=None` starts by loading a URL; `others`: so many further ways."""
        return await self.source.path(site, source, target, allow_goto=allow_goto, avoid=avoid, others=others)

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
        """Find the state that is meant, and the way to it from the current page, in one call."""
        wanted = _wanted(site=site, query=query, intent=intent, current=current, select=select, k=k)
        return await self.source.navigate(wanted)

    async def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Report how steps of paths worked; `teleport` does it by itself."""
        return await self.source.feedback(site, walked)

    async def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it."""
        return await self.source.node(site, node_id)

    async def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return await self.source.screenshot(site, node_id)

    async def teleport(
        self,
        page: Page,
        site: str,
        target: str,
        **options: Any,  # noqa: ANN401 - typed where they are defined
    ) -> TeleportResult:
        """Walk `page` to a state and check the arrival; options are those of `waygraph.teleport.teleport`."""
        from waygraph.teleport import teleport  # noqa: PLC0415 - needs Playwright, asking for states does not

        return await teleport(page, self.source, site, target, **options)

    async def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""
        await self.source.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def open_source(url_or_store: str | PathLike[str], api_key: str | None = None) -> MapSource:
    """Open the service at a URL, or the store in a folder."""
    location = fspath(url_or_store)
    if _is_service(location):
        from waygraph.client import ServiceMap  # noqa: PLC0415 - httpx is needed for services alone

        return ServiceMap(location, api_key)
    from waygraph.local import StoreMap  # noqa: PLC0415 - pyarrow, Qdrant and numpy are needed for stores alone

    return StoreMap(location)


def open_async_source(url_or_store: str | PathLike[str], api_key: str | None = None) -> AsyncMapSource:
    """The same, for an event loop. A store is read in threads."""
    location = fspath(url_or_store)
    if _is_service(location):
        from waygraph.client import AsyncServiceMap  # noqa: PLC0415 - httpx is needed for services alone

        return AsyncServiceMap(location, api_key)
    return InThreads(open_source(location))


def _is_service(location: str) -> bool:
    return location.startswith(("http://", "https://"))


def _wanted(**values: object) -> NavigateRequest:
    from waygraph.calls import checked  # noqa: PLC0415 - what a program that only imports us need not load

    return checked(NavigateRequest, **values)
