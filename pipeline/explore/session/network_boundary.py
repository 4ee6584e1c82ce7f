"""Network boundary of an exploration: the egress proxy, with the request policy that the network guard applies too."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from waygraph.core.settings import ExploreSettings, Settings
from waygraph.core.urls import parse_start_url, site_key
from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.egress import EgressCallbacks, EgressProxy, HostRules, UpstreamProxy
from waygraph.pipeline.browser.guard import GuardRules, RequestPolicy, StateChangingUrls
from waygraph.pipeline.browser.guard.static_files import StaticFiles
from waygraph.pipeline.explore.policies.hazard_urls import state_changing_globs
from waygraph.pipeline.explore.policies.site_policies import SitePolicies

#: Blocked requests, and refused destinations, that are recorded. All are counted.
_MAX_RECORDS = 1_000


@dataclass(slots=True)
class NetworkBoundary:
    """The proxy that a site is explored through, the policies of the site, and the requests that the proxy stopped.

    Attributes
    ----------
    proxy
        The proxy; browsers take its `url`, with `guarded=True`.
    policies
        Policies of the site.
    request_policy
        Which requests the pages of this site may send.
    blocked
        Requests that only the proxy stopped; the page that sent them is not known.
    refused
        Destinations that are not public and were not named by the user, as (URL, reason).
    counters
        `egress/blocked`, `egress/refused`, `guard/unguarded`, `requests/...`.
    static_files
        Static files that pages of the site have requested; None if every page requests them.
    """

    proxy: EgressProxy
    policies: SitePolicies
    request_policy: RequestPolicy
    blocked: list[BlockedRequest] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    static_files: StaticFiles | None = None

    @property
    def bytes_received(self) -> int:
        """Bytes received from all hosts, over the wire."""
        return self.proxy.bytes_received.total()

    def switch_site(self, site: str, explore: ExploreSettings, *, start: str) -> None:
        """Apply the policies of another site from now on: the start page led there.

        Parameters
        ----------
        site
            Key of the site that the start page led to.
        explore
            Settings with the scope and the rules file.
        start
            Key of the site that the user asked for.

        Raises
        ------
        InvalidInput
            See `SitePolicies.of`.
        """
        self.policies = SitePolicies.of(site, explore, start=start)
        policy = replace(_request_policy(site, explore, self.policies), visits=self.request_policy.visits)
        self.request_policy = self.proxy.request_policy = policy

    def add_blocked(self, request: BlockedRequest) -> None:
        """Record a request that the proxy stopped."""
        self.counters["egress/blocked"] += 1
        if len(self.blocked) < _MAX_RECORDS:
            self.blocked.append(request)

    def add_refused(self, url: str, reason: str) -> None:
        """Record a destination that the proxy refused."""
        self.counters["egress/refused"] += 1
        if len(self.refused) < _MAX_RECORDS:
            self.refused.append((url, reason))

    def add_unguarded(self) -> None:
        """Count a frame or worker that could not be guarded and therefore was not started."""
        self.counters["guard/unguarded"] += 1


@asynccontextmanager
async def network_boundary(start_url: str, settings: Settings) -> AsyncIterator[NetworkBoundary]:
    """Run the proxy for exploring from `start_url`. It stays while browsers are replaced.

    Parameters
    ----------
    start_url
        Start URL as the user wrote it.
    settings
        Settings of the browser and of the exploration.

    Yields
    ------
    NetworkBoundary
        The running boundary.

    Raises
    ------
    InvalidInput
        If the URL, the scope, the rules file or the user's proxy address is malformed.
    """
    explore = settings.explore
    site = site_key(parse_start_url(start_url))
    policies = SitePolicies.of(site, explore)
    request_policy = _request_policy(site, explore, policies)
    proxy = EgressProxy(
        allowed=policies.scope.named,
        upstream=UpstreamProxy.parse(explore.proxy.get_secret_value()),
        request_policy=request_policy,
        host_rules=HostRules.parse(settings.browser.extra_args),
    )
    boundary = NetworkBoundary(proxy, policies, request_policy)
    if explore.static_files_bytes:
        boundary.static_files = StaticFiles(explore.static_files_bytes, boundary.counters)
    proxy.callbacks = EgressCallbacks(on_blocked=boundary.add_blocked, on_refused=boundary.add_refused)
    async with proxy:
        yield boundary


def _request_policy(site: str, explore: ExploreSettings, policies: SitePolicies) -> RequestPolicy:
    state_changing = StateChangingUrls(policies.is_state_changing, state_changing_globs())
    return RequestPolicy(explore.guard, GuardRules.read(explore.rules, site), state_changing)
