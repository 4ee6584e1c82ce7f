"""The sites of a task: what agents call them, and which of them a model means."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waygraph.agents.actions.types import ActionSyntaxError
from waygraph.core.errors import InvalidInput, WaygraphError
from waygraph.core.urls import parse_start_url, site_key

if TYPE_CHECKING:
    from waygraph.sdk.facade import AsyncWaygraph

log = logging.getLogger(__name__)

#: Longest title that prompts show, in characters.
_MAX_TITLE = 80
_WWW = "www."


@dataclass(frozen=True, slots=True)
class AgentSite:
    """A site of a task.

    Attributes
    ----------
    name
        Its name in the task file; its key if it has none.
    key
        Its key: the host, with the port if it is not the scheme's default.
    url
        URL of its first page.
    is_mapped
        Whether there is a map of it.
    title
        Title of the map's start page, as the site wrote it; empty: unknown.
    states
        Number of states in its map.
    tools
        Number of tools in its map.
    """

    name: str
    key: str
    url: str
    is_mapped: bool = False
    title: str = ""
    states: int = 0
    tools: int = 0

    def __str__(self) -> str:
        return self.name if self.name == self.key else f"{self.name} ({self.key})"

    @property
    def label(self) -> str:
        """Name, title and key for prompts. The title is untrusted, so it is a JSON string.

        >>> print(AgentSite("shopping", "127.0.0.1:7770", "http://127.0.0.1:7770/", title="Northfold").label)
        shopping ("Northfold", 127.0.0.1:7770)
        """
        parts = [*([json.dumps(self.title, ensure_ascii=False)] if self.title else ())]
        parts += [self.key] if self.name != self.key else []
        return f"{self.name} ({', '.join(parts)})" if parts else self.name


def mapped_sites(sites: Iterable[AgentSite]) -> list[AgentSite]:
    """Return the sites that have maps."""
    return [site for site in sites if site.is_mapped]


def find_mapped_site(text: str, sites: Sequence[AgentSite]) -> AgentSite:
    """Return the mapped site that a model means.

    Parameters
    ----------
    text
        Name, key, title or any URL of a site; upper and lower case do not count.
    sites
        The sites of the task.

    Returns
    -------
    AgentSite
        The site.

    Raises
    ------
    ActionSyntaxError
        If it is none of them, or has no map; the message lists those that have one.

    Examples
    --------
    >>> shop = AgentSite("shopping", "shop.example", "https://shop.example/", is_mapped=True, title="Northfold")
    >>> {find_mapped_site(text, [shop]).key for text in ("Shopping", "NORTHFOLD", "https://shop.example/cart")}
    {'shop.example'}
    """
    written = " ".join(text.split()).casefold()
    key = _key_of(text)
    named = next((site for site in sites if written in {site.name.casefold(), site.label.casefold()}), None)
    at_host = next((site for site in sites if site.key in {written, key}), None)
    titled = [site for site in sites if site.title and written == site.title.casefold()]
    site = named or at_host or (titled[0] if len(titled) == 1 else None)
    known = ", ".join(map(str, mapped_sites(sites))) or "none"
    if site is None:
        raise ActionSyntaxError(f"There is no map of '{text[:_MAX_TITLE]}'; write one of these sites: {known}.")
    if not site.is_mapped:
        raise ActionSyntaxError(f"The site {site.name} has no map; use links to get there. Sites with a map: {known}.")
    return site


async def describe_sites(
    urls: Iterable[tuple[str, str]], mapped: Collection[str], maps: AsyncWaygraph | None
) -> tuple[AgentSite, ...]:
    """Return the sites of a task, with what their maps say of them.

    Parameters
    ----------
    urls
        Name and URL of each site; an empty name: its key.
    mapped
        Keys of the sites that have maps.
    maps
        The maps; None: there are none.

    Returns
    -------
    tuple of AgentSite
        The sites. A map that belongs to the host with or without `www.` is taken, with its key and its start URL.
    """
    return tuple([await _describe(name, url, mapped, maps) for name, url in urls])


async def _describe(name: str, url: str, mapped: Collection[str], maps: AsyncWaygraph | None) -> AgentSite:
    own = site_key(parse_start_url(url))
    other = own.removeprefix(_WWW) if own.startswith(_WWW) else f"{_WWW}{own}"
    key = next((each for each in (own, other) if each in mapped), own)
    if maps is None or key not in mapped:
        return AgentSite(name or own, own, url)
    title, states, tools, start = "", 0, 0, url
    try:
        detail = await maps.site(key)
        states, start = detail.states, url if key == own else detail.start_url
        tools = (await maps.tools(key, limit=1)).total
        title = " ".join((await maps.node(key, detail.start_node_id)).title.split())[:_MAX_TITLE]
    except WaygraphError as error:  # the first `navigate` reports it, to the agent and in the trace
        log.warning("agent/map_unreadable %s: %s", key, error.message)
    return AgentSite(name or key, key, start, is_mapped=True, title=title, states=states, tools=tools)


def _key_of(text: str) -> str:
    """Return the key of the site of a URL as a model wrote it; empty if it is none."""
    try:
        return site_key(parse_start_url(text))
    except InvalidInput:
        return ""
