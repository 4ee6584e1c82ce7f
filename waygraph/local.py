"""How does a program ask the maps in a folder, without a service? In its own process, with the same answers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Self

from serve.maps import ANYWHERE, Maps
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
from waygraph.settings import Settings


class StoreMap:
    """The maps of a store, opened when they are first asked for. The encoder is loaded by the first search.

    Parameters
    ----------
    store : folder that holds the maps.
    settings : how to encode and how often to look for new versions; `settings.store` is not used.

    """

    def __init__(self, store: str | PathLike[str], settings: Settings | None = None) -> None:
        settings = (settings or Settings()).model_copy(update={"store": fspath(store)})
        self._maps = Maps(settings)
        self._maps.open()
        self._interval = settings.serve.refresh_seconds
        self._refreshed = time.monotonic()

    def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        return self._fresh().sites()

    def site(self, key: str) -> SiteDetail:
        """One site."""
        return self._fresh().site(key)

    def search(self, site: str | None, query: str, k: int = 10, where: Filter | None = None) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all."""
        return self._fresh().search(site, query, k, where or ANYWHERE)

    def search_batch(
        self, site: str | None, queries: Sequence[str], k: int = 10, where: Filter | None = None
    ) -> BatchSearchAnswer:
        """The same for several questions."""
        return BatchSearchAnswer(answers=[self.search(site, query, k, where) for query in queries])

    def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        return self._fresh().locate(site, url, structure, features)

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
        """The cheapest known way to a state; `source=None` starts by loading a URL."""
        return self._fresh().path(site, source, target, allow_goto=allow_goto, avoid=avoid, others=others)

    def navigate(self, wanted: NavigateRequest) -> NavigateAnswer:
        """Find the state that is meant, and the way to it, in one call."""
        return self._fresh().navigate(wanted)

    def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Report how steps of paths worked."""
        return self._fresh().feedback(site, walked)

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it."""
        return self._fresh().node(site, node_id)

    def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return self._fresh().screenshot(site, node_id)

    def close(self) -> None:
        """Close every opened map."""
        self._maps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fresh(self) -> Maps:
        """Pick up newly published versions, as often as the service does."""
        now = time.monotonic()
        if now - self._refreshed >= self._interval:
            self._refreshed = now
            self._maps.refresh()
        return self._maps
