"""What does a Python program use? `Waygraph`: one object that asks for states and walks an agent's page to them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self

from waygraph.schemas import AvoidedStep, LocateAnswer, NodeAnswer, PathAnswer, SearchAnswer, SiteDetail, SiteSummary
from waygraph.source import MapSource

if TYPE_CHECKING:
    from playwright.async_api import Page

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
    ...     best = maps.search("shop.example", "where returns are explained").hits[0]
    ...     way = maps.path("shop.example", None, best.node_id)

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

    def search(self, site: str | None, query: str, k: int = 10) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all."""
        return self.source.search(site, query, k)

    def locate(self, site: str, url: str, structure: list[str] | None = None) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        return self.source.locate(site, url, structure)

    def path(
        self,
        site: str,
        source: str | None,
        target: str,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
    ) -> PathAnswer:
        """The cheapest known way to a state; `source=None` starts by loading a URL."""
        return self.source.path(site, source, target, allow_goto, avoid)

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it."""
        return self.source.node(site, node_id)

    def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return self.source.screenshot(site, node_id)

    async def teleport(  # options are typed where they are defined
        self,
        page: Page,
        site: str,
        target: str,
        **options: Any,  # noqa: ANN401
    ) -> TeleportResult:
        """Walk `page` to a state and check the arrival; options are those of `waygraph.teleport.teleport`."""
        from waygraph.teleport import teleport  # noqa: PLC0415 - needs Playwright, asking for states does not

        return await teleport(page, self.source, site, target, **options)

    def close(self) -> None:
        """Release connections and opened maps. Closing twice is allowed."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_source(url_or_store: str | PathLike[str], api_key: str | None = None) -> MapSource:
    """Open the service at a URL, or the store in a folder."""
    location = fspath(url_or_store)
    if location.startswith(("http://", "https://")):
        from waygraph.client import ServiceMap  # noqa: PLC0415 - httpx is needed for services alone

        return ServiceMap(location, api_key)
    from waygraph.local import StoreMap  # noqa: PLC0415 - pyarrow, Qdrant and numpy are needed for stores alone

    return StoreMap(location)
