"""The API of everything that answers questions about mapped sites, asynchronous and blocking.

Each operation is defined once, as a method of `AsyncMapApi` that builds a request and awaits `send`. `MapApi` has the
blocking form of each. A source implements `send` and `close`: `waygraph.client.service` over HTTP,
`waygraph.sdk.local` in this process. `waygraph.sdk.facade` forwards `send` to one of them.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from waygraph.client import requests
from waygraph.client.blocking import run_to_completion
from waygraph.client.requests import MapRequest
from waygraph.core.schemas import (
    AvoidedStep,
    BatchSearchAnswer,
    BatchSearchRequest,
    FeedbackAnswer,
    FeedbackRequest,
    Filter,
    LocateAnswer,
    LocateRequest,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    PathRequest,
    SearchAnswer,
    SearchRequest,
    SiteDetail,
    SiteSummary,
    ToolsAnswer,
    ToolsRequest,
    WalkedStep,
)

P = ParamSpec("P")
T = TypeVar("T")


class AsyncMapApi(ABC):
    """Operations on mapped sites, for programs with an event loop.

    Every method may raise the typed errors of `waygraph.core.errors`.
    """

    @abstractmethod
    async def send(self, request: MapRequest[T]) -> T:
        """Answer one request."""

    @abstractmethod
    async def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def sites(self) -> list[SiteSummary]:
        """Return all mapped sites, sorted by key."""
        return await self.send(MapRequest(requests.SITES))

    async def site(self, key: str) -> SiteDetail:
        """Return one site with everything that its manifest holds for callers.

        Parameters
        ----------
        key
            Key of the site.

        Returns
        -------
        SiteDetail
            The site.

        Raises
        ------
        NotFound
            If the site is not mapped.
        """
        return await self.send(MapRequest(requests.SITE, (key,)))

    async def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """Return the states that match a query best, best first.

        Parameters
        ----------
        site
            Site to search; `None` searches all sites whose maps fit the encoder.
        query
            What the page is for or shows, in plain words.
        k
            Number of states to return.
        where
            Conditions that the states must meet.

        Returns
        -------
        SearchAnswer
            The states, best first.

        Raises
        ------
        NotFound
            If the site is not mapped.
        EncoderMismatch
            If the map was made with another encoder.
        InvalidInput
            If the query is blank or `k` is out of range.
        """
        body = _search_request(query, k, where)
        if site is None:
            return await self.send(MapRequest(requests.SEARCH_ALL_SITES, body=body))
        return await self.send(MapRequest(requests.SEARCH, (site,), body))

    async def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """Return the answers to several queries, in their order; parameters and errors are those of `search`."""
        searches = [_search_request(query, k, where) for query in queries]
        body = BatchSearchRequest.model_construct(site=site, searches=searches)
        return await self.send(MapRequest(requests.SEARCH_BATCH, body=body))

    async def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Return the state that a page shows.

        Parameters
        ----------
        site
            Key of the site.
        url
            URL of the page.
        structure
            Hashes of the page's elements, see `waygraph.index.graph.identity`. Without them only the URL is compared.
        features
            Count of each feature of the page, see `waygraph.pipeline.browser.page.features`. With them, a page whose
            structure belongs to no state is also recognised by what distinguishes a state from the others.

        Returns
        -------
        LocateAnswer
            The state, the rule that found it, and its confidence.

        Raises
        ------
        NotFound
            If the site is not mapped.
        InvalidInput
            If `url` is not a URL.
        """
        counts = None if features is None else dict(features)
        body = LocateRequest.model_construct(url=url, structure=structure, features=counts)
        return await self.send(MapRequest(requests.LOCATE, (site,), body))

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
        """Return the cheapest known path to a state.

        Parameters
        ----------
        site
            Key of the site.
        source
            Node id of the state where the path starts; `None` starts with loading a URL.
        target
            Node id of the state where the path ends.
        allow_goto
            Whether a step may load a URL.
        avoid
            Steps that the path must not use, for example because they were tried and failed.
        others
            Number of further paths to return, where there are any.

        Returns
        -------
        PathAnswer
            The path; no steps if the source is the target.

        Raises
        ------
        NotFound
            If the site or a state is not in the map.
        NoPath
            If the map has no such path.
        """
        body = PathRequest.model_construct(
            source=source, target=target, allow_goto=allow_goto, avoid=list(avoid), alternatives=others
        )
        return await self.send(MapRequest(requests.PATH, (site,), body))

    async def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Report how steps of paths worked, so that later paths avoid broken steps. `teleport` reports by itself."""
        body = FeedbackRequest.model_construct(walked=list(walked))
        return await self.send(MapRequest(requests.FEEDBACK, (site,), body))

    async def node(self, site: str, node_id: str) -> NodeAnswer:
        """Return one state and the actions that are possible in it.

        Parameters
        ----------
        site
            Key of the site.
        node_id
            Id of the state, or a unique prefix of one (4 digits or more).

        Returns
        -------
        NodeAnswer
            The state.

        Raises
        ------
        NotFound
            If the map has no such state.
        """
        return await self.send(MapRequest(requests.NODE, (site, node_id)))

    async def tools(
        self, site: str, *, state: str = "", tool: str = "", first: int = 0, limit: int = 100
    ) -> ToolsAnswer:
        """Return what one can do on a site's states, with the inputs.

        Parameters
        ----------
        site
            Key of the site.
        state
            Only tools of this state: its id, or a unique prefix of one (4 digits or more).
        tool
            Only tools with an id that begins so (8 digits or more); if there are none, those with this name. A name
            of 32 hexadecimal digits is none.
        first
            Number of tools to leave out.
        limit
            Most tools to return, at most 500.

        Returns
        -------
        ToolsAnswer
            Tools of states near the start page first, and the number of all.

        Raises
        ------
        NotFound
            If the site or the state is not in the map.
        """
        body = ToolsRequest.model_construct(state=state, tool=tool, first=first, limit=limit)
        return await self.send(MapRequest(requests.TOOLS, (site,), body))

    async def screenshot(self, site: str, node_id: str) -> bytes:
        """Return the screenshot of one state, a JPEG image.

        Parameters
        ----------
        site
            Key of the site.
        node_id
            Id of the state, or a unique prefix of one (4 digits or more).

        Returns
        -------
        bytes
            The image.

        Raises
        ------
        NotFound
            If the map has no such state, or it was recorded without a screenshot.
        """
        return await self.send(MapRequest(requests.SCREENSHOT, (site, node_id)))


class AsyncMapSource(AsyncMapApi):
    """A service or a store, for programs with an event loop."""

    async def navigate(self, wanted: NavigateRequest) -> NavigateAnswer:
        """Search for a state, choose one candidate and plan the path to it, in one call."""
        return await self.send(MapRequest(requests.NAVIGATE, body=wanted))


def _search_request(query: str, k: int, where: Filter | None) -> SearchRequest:
    conditions = {} if where is None else where.model_dump()
    return SearchRequest.model_construct(query=query, k=k, **conditions)


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[MapApi, P], T]:
    """Return the blocking form of a method that awaits nothing but `send`."""

    @wraps(method)
    def call(self: MapApi, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run_to_completion(method(_BlockingSender(self), *args, **kwargs))

    return call


class MapApi(ABC):
    """Blocking form of `AsyncMapApi`: the same methods with the same parameters, results and errors."""

    @abstractmethod
    def send(self, request: MapRequest[T]) -> T:
        """Answer one request."""

    @abstractmethod
    def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    sites = blocking(AsyncMapApi.sites)
    site = blocking(AsyncMapApi.site)
    search = blocking(AsyncMapApi.search)
    search_batch = blocking(AsyncMapApi.search_batch)
    locate = blocking(AsyncMapApi.locate)
    path = blocking(AsyncMapApi.path)
    feedback = blocking(AsyncMapApi.feedback)
    node = blocking(AsyncMapApi.node)
    tools = blocking(AsyncMapApi.tools)
    screenshot = blocking(AsyncMapApi.screenshot)


class MapSource(MapApi):
    """A service or a store."""

    navigate = blocking(AsyncMapSource.navigate)


class _BlockingSender(AsyncMapSource):
    """Gives a blocking source to the methods of `AsyncMapApi`, whose coroutines then never suspend."""

    def __init__(self, maps: MapApi) -> None:
        self._maps = maps

    async def send(self, request: MapRequest[T]) -> T:
        return self._maps.send(request)

    async def close(self) -> None:
        self._maps.close()


class ThreadedMapSource(AsyncMapSource):
    """A blocking source for programs with an event loop: every request is answered in a thread.

    Parameters
    ----------
    source
        The blocking source.
    """

    def __init__(self, source: MapApi) -> None:
        self._source = source

    async def send(self, request: MapRequest[T]) -> T:
        """Answer one request in a thread."""
        return await asyncio.to_thread(self._source.send, request)

    async def close(self) -> None:
        """Close the source in a thread."""
        await asyncio.to_thread(self._source.close)
