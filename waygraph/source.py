"""Where do a site's maps come from? One protocol, met by a running service and by a store in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from waygraph.schemas import (
    AvoidedStep,
    BatchSearchAnswer,
    FeedbackAnswer,
    Filter,
    LocateAnswer,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SiteDetail,
    SiteSummary,
    WalkedStep,
)


class MapSource(Protocol):
    """Answers questions about mapped sites. Every call may raise the typed errors of `waygraph.errors`."""

    def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        ...

    def site(self, key: str) -> SiteDetail:
        """One site (NotFound)."""
        ...

    def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all (NotFound, EncoderMismatch)."""
        ...

    def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """The same for several questions at once."""
        ...

    def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes.

        With `features` (what the page shows, see `pipeline.browser.features`) also a state that they tell from others.
        """
        ...

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
        """The cheapest known way to a state; `source=None` starts by loading a URL (NotFound, NoPath).

        Steps to `avoid` are those that were tried and failed; `others` asks for so many further ways.
        """
        ...

    def navigate(self, wanted: NavigateRequest) -> NavigateAnswer:
        """Find the state that is meant, and the way to it, in one call."""
        ...

    def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Report how steps of paths worked, so that others are led around what is broken."""
        ...

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it (NotFound)."""
        ...

    def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state (NotFound)."""
        ...

    def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""
        ...


class AsyncMapSource(Protocol):
    """The same, awaited: what each call means is said in `MapSource`."""

    async def sites(self) -> list[SiteSummary]: ...  # noqa: D102
    async def site(self, key: str) -> SiteDetail: ...  # noqa: D102
    async def search(  # noqa: D102
        self, site: str | None, query: str, k: int = 10, where: Filter | None = None
    ) -> SearchAnswer: ...
    async def search_batch(  # noqa: D102
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer: ...
    async def locate(  # noqa: D102
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer: ...
    async def path(  # noqa: D102
        self,
        site: str,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
        others: int = 0,
    ) -> PathAnswer: ...
    async def navigate(self, wanted: NavigateRequest) -> NavigateAnswer: ...  # noqa: D102
    async def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer: ...  # noqa: D102
    async def node(self, site: str, node_id: str) -> NodeAnswer: ...  # noqa: D102
    async def screenshot(self, site: str, node_id: str) -> bytes: ...  # noqa: D102
    async def close(self) -> None: ...  # noqa: D102


class InThreads:
    """A source that blocks, for callers with an event loop."""

    def __init__(self, source: MapSource) -> None:
        self._source = source

    async def sites(self) -> list[SiteSummary]:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.sites)

    async def site(self, key: str) -> SiteDetail:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.site, key)

    async def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.search, site, query, k, where)

    async def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.search_batch, site, queries, k, where)

    async def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.locate, site, url, structure, features)

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
        """See `MapSource`."""
        return await asyncio.to_thread(
            self._source.path, site, source, target, allow_goto=allow_goto, avoid=avoid, others=others
        )

    async def navigate(self, wanted: NavigateRequest) -> NavigateAnswer:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.navigate, wanted)

    async def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.feedback, site, walked)

    async def node(self, site: str, node_id: str) -> NodeAnswer:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.node, site, node_id)

    async def screenshot(self, site: str, node_id: str) -> bytes:
        """See `MapSource`."""
        return await asyncio.to_thread(self._source.screenshot, site, node_id)

    async def close(self) -> None:
        """See `MapSource`."""
        await asyncio.to_thread(self._source.close)
