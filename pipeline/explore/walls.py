"""What stands between the browser and everything else? The egress proxy, with the rules that the guard has too."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from index.graph import BlockedRequest, parse_start_url, site_key
from pipeline.browser.egress import EgressProxy, HostRules, UpstreamProxy
from pipeline.browser.guard import ActsOnGet, GuardRules, Judge
from pipeline.explore.addresses import acting_globs
from pipeline.explore.blocklist import BlockList
from pipeline.explore.hazard import Hazards
from pipeline.explore.scope import Scope
from waygraph.settings import Settings

_MOST_RECORDS = 1_000


@dataclass(slots=True)
class Walls:
    """The proxy that a site is explored through, and what it stopped.

    Attributes
    ----------
    proxy : give its `url` to `launch`, with `guarded=True`.
    judge : what pages of this site may send and ask for; give its rules and `acts` to `GuardedPage.open`.
    blocked : requests that only the proxy stopped: no page is known for them.
    refused : (URL, reason) of destinations that are not public and were not named.
    counters : `egress/blocked`, `egress/refused`, `guard/unguarded`.
    """

    proxy: EgressProxy
    judge: Judge
    blocked: list[BlockedRequest] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)

    @property
    def bytes_received(self) -> int:
        """Bytes that came from all hosts, over the wire."""
        return self.proxy.bytes_received.total()

    def follow(self, site: str, settings: Settings) -> None:
        """The start page led to another site than the one asked for: from now on its rules count."""
        self.judge = self.proxy.judge = _judge(site, settings)

    def add_blocked(self, request: BlockedRequest) -> None:
        """Note a request that the proxy stopped."""
        self.counters["egress/blocked"] += 1
        if len(self.blocked) < _MOST_RECORDS:
            self.blocked.append(request)

    def add_unguarded(self) -> None:
        """Note a frame or worker that could not be guarded, and so was never set going."""
        self.counters["guard/unguarded"] += 1

    def add_refused(self, url: str, reason: str) -> None:
        """Note a destination that the proxy refused."""
        self.counters["egress/refused"] += 1
        if len(self.refused) < _MOST_RECORDS:
            self.refused.append((url, reason))


@asynccontextmanager
async def walls(start_url: str, settings: Settings) -> AsyncIterator[Walls]:
    """Put up the walls for exploring from `start_url`. They stay while browsers come and go.

    Raises
    ------
    InvalidInput
        For a URL, scope, rules file or proxy address that makes no sense.
    """
    explore = settings.explore
    site = site_key(parse_start_url(start_url))
    judge = _judge(site, settings)
    proxy = EgressProxy(
        allowed=Scope.of(site, explore).named,
        upstream=UpstreamProxy.parse(explore.proxy.get_secret_value()),
        judge=judge,
        host_rules=HostRules.of(settings.browser.extra_args),
    )
    around = Walls(proxy, judge)
    proxy.on_blocked = around.add_blocked
    proxy.on_refused = around.add_refused
    async with proxy:
        yield around


def _judge(site: str, settings: Settings) -> Judge:
    explore = settings.explore
    scope = Scope.of(site, explore)
    hazards = Hazards(BlockList.read(explore.rules, site))

    def says(url: str) -> bool:
        return hazards.refuse_url(url) is not None and scope.refuse_url(url) is None

    return Judge(explore.guard, GuardRules.read(explore.rules, site), ActsOnGet(says, acting_globs()))
