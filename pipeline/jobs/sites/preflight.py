"""Preflight check of a run: everything that can be wrong with sites and settings, before anything slow starts."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.core.errors import InvalidInput
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.pipeline.explore.policies.blocklist import BlockList
from waygraph.pipeline.explore.policies.scope import Scope
from waygraph.pipeline.explore.session.storage_state import read_storage_state
from waygraph.pipeline.jobs.sites.site_list import plan_sites
from waygraph.pipeline.jobs.sites.site_settings import settings_for_site


def check_sites(start_urls: Sequence[str], settings: Settings) -> None:
    """Check start URLs, scope, rules and sessions of a run.

    Parameters
    ----------
    start_urls
        Start URLs as users write them.
    settings
        Settings of the run.

    Raises
    ------
    InvalidInput
        If a URL is malformed, scopes contradict each other, the rules file is malformed, or the session of the only
        site is not usable. Of several sites, one that the run's session does not belong to fails alone, later.
    """
    sites = [task.site for task in plan_sites(start_urls).tasks]
    check_scope(sites, settings.explore)
    BlockList.read(settings.explore.rules, sites[0])
    for site in sites:
        explore = settings_for_site(settings, site).explore
        if len(sites) == 1 or explore.storage_state != settings.explore.storage_state:
            read_storage_state(explore.storage_state, site)


def check_scope(sites: Sequence[str], explore: ExploreSettings) -> None:
    """Check that no page would belong to two sites.

    Parameters
    ----------
    sites
        Keys of the sites of a run.
    explore
        Settings with the scope.

    Raises
    ------
    InvalidInput
        If scopes overlap, or a site has no registrable domain although the scope is the domain.
    """
    if explore.scope_hosts and len(sites) > 1:
        raise InvalidInput(
            f"--scope-host would make {', '.join(explore.scope_hosts)} a part of each of {len(sites)} sites.",
            hint="Use --scope-host with one start URL.",
        )
    domains: dict[str, str] = {}
    for site in sites:
        domain = Scope.of(site, explore).domain
        if domain and (other := domains.setdefault(domain, site)) != site:
            raise InvalidInput(
                f"With --scope domain, {other} and {site} are one site.", hint="Name one of them as the start."
            )
