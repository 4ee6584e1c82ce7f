"""Where do a site's maps come from? One protocol, met by a running service and by a store in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from waygraph.schemas import AvoidedStep, LocateAnswer, NodeAnswer, PathAnswer, SearchAnswer, SiteDetail, SiteSummary


class MapSource(Protocol):
    """Answers questions about mapped sites. Every call may raise the typed errors of `waygraph.errors`."""

    def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        ...

    def site(self, key: str) -> SiteDetail:
        """One site (NotFound)."""
        ...

    def search(self, site: str | None, query: str, k: int = 10) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all (NotFound, EncoderMismatch)."""
        ...

    def locate(self, site: str, url: str, structure: list[str] | None = None) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        ...

    def path(
        self,
        site: str,
        source: str | None,
        target: str,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
    ) -> PathAnswer:
        """The cheapest known way to a state; `source=None` starts by loading a URL (NotFound, NoPath).

        Steps to `avoid` are those that were tried and failed.
        """
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
