"""Where an agent may go: the hosts of its task, through an egress proxy that reaches public addresses only.

Documents of other hosts are refused, whatever asks for them: the agent, a script, a frame, a popup, a redirect.
Addresses that are not public are refused for everything, unless the user named the host: in a start URL, or with
`--scope-host` or `--scope domain`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from waygraph.agents.actions.home_page import HOME_URL
from waygraph.core.urls import parse_start_url, site_key
from waygraph.pipeline.browser.egress import EgressCallbacks, EgressProxy, HostRules, UpstreamProxy
from waygraph.pipeline.browser.guard.document_gate import DocumentGate
from waygraph.pipeline.explore.policies.scope import Scope

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from waygraph.core.settings import ExploreSettings, Settings


#: Limit of the connections recorded between two actions. All are counted.
_MAX_RECORDS = 20


class AgentBoundary:
    """The boundary of one task. Its context takes `context_options`; call `confine` once the start pages are open.

    Parameters
    ----------
    proxy
        The running proxy.
    explore
        Settings with the scope.
    """

    def __init__(self, proxy: EgressProxy, explore: ExploreSettings) -> None:
        self._proxy = proxy
        self._explore = explore
        self._gate: DocumentGate | None = None
        self._unreachable: list[str] = []
        self._addresses = 0
        proxy.callbacks = EgressCallbacks(on_refused=self._add_unreachable)

    @property
    def context_options(self) -> dict[str, Any]:
        """Options of Playwright's `new_context`: all traffic goes through the proxy, that to loopback as well."""
        return {"proxy": {"server": self._proxy.url, "bypass": "<-loopback>"}}

    @property
    def count(self) -> int:
        """Number of documents and connections that were refused."""
        return self._addresses + (self._gate.count if self._gate is not None else 0)

    async def confine(
        self, context: BrowserContext, start_urls: Sequence[str], *, has_home_page: bool = False
    ) -> Scope:
        """Refuse documents outside of the scope from now on.

        Parameters
        ----------
        context
            The context, whose pages show what the start URLs lead to. Those hosts belong to the scope too.
        start_urls
            URLs of the sites of the task, start URLs first; at least one.
        has_home_page
            Whether the list of the sites (`HOME_URL`) belongs to the scope.

        Returns
        -------
        Scope
            The hosts of the task.

        Raises
        ------
        InvalidInput
            If a host of the scope is malformed, or the site of the first start URL has no domain to take.
        """
        shown = [page.url for page in context.pages if page.url.startswith(("http:", "https:"))]
        scope = _scope([*start_urls, *shown, *([HOME_URL] if has_home_page else [])], self._explore)
        self._gate = DocumentGate(lambda url: scope.refuse_url(url) is not None, _outside(scope))
        await self._gate.attach(context)
        return scope

    async def release(self) -> None:
        """Refuse no documents any longer, only addresses that are not public: the agent has ended."""
        if self._gate is not None:
            await self._gate.detach()

    async def take_refused(self) -> list[str]:
        """Return what was refused since the last call: documents that tabs tried to show, and connections."""
        documents = await self._gate.take_refused() if self._gate is not None else []
        unreachable, self._unreachable = self._unreachable, []
        return [*documents, *unreachable]

    def _add_unreachable(self, url: str, reason: str) -> None:
        self._addresses += 1
        known = f"{url} ({reason})"
        if known not in self._unreachable and len(self._unreachable) < _MAX_RECORDS:
            self._unreachable.append(known)


@asynccontextmanager
async def agent_boundary(start_urls: Sequence[str], settings: Settings) -> AsyncIterator[AgentBoundary]:
    """Run the egress proxy of a task for the time of the block.

    Parameters
    ----------
    start_urls
        URLs of the sites of the task, start URLs first; at least one.
    settings
        Settings of the scope and of the user's own proxy.

    Yields
    ------
    AgentBoundary
        The boundary.

    Raises
    ------
    InvalidInput
        If a URL, the scope or the user's proxy address is malformed.
    """
    explore = settings.explore
    proxy = EgressProxy(
        allowed=_scope(start_urls, explore).named,
        upstream=UpstreamProxy.parse(explore.proxy.get_secret_value()),
        host_rules=HostRules.parse(settings.browser.extra_args),
    )
    async with proxy:
        yield AgentBoundary(proxy, explore)


def _scope(urls: Collection[str], explore: ExploreSettings) -> Scope:
    first, *others = dict.fromkeys(site_key(parse_start_url(url)) for url in urls)
    return Scope.of(first, explore.model_copy(update={"scope_hosts": (*explore.scope_hosts, *others)}))


def _outside(scope: Scope) -> re.Pattern[str]:
    """Return a pattern that matches all URLs of HTTP outside of a scope, and perhaps some inside."""
    hosts = [re.escape(key) for key in sorted({scope.site, *scope.hosts})]
    if scope.domain:
        hosts.append(rf"(?:[^/?#@:]+\.)?{re.escape(scope.domain)}(?::\d+)?")
    return re.compile(rf"^https?://(?!(?:{'|'.join(hosts)})(?:[/?#]|$))")
