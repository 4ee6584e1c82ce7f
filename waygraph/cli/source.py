"""Where do answers come from, and which site or state does the user mean?

`search`, `path`, `teleport`, `sites` and `show` read a map the same way from a store on disk and from a
running service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from index.graph.urls import parse_start_url, site_key
from waygraph.cli.options import load_settings
from waygraph.errors import InvalidInput, NotFound
from waygraph.settings import Settings

if TYPE_CHECKING:
    from waygraph.source import MapSource

_NODE_ID = re.compile(r"[0-9a-f]{32}")
_NODE_ID_PREFIX = re.compile(r"[0-9a-f]{4,31}")


@contextmanager
def open_source(
    store: str | None, url: str | None, api_key: str | None, *, settings: Settings | None = None
) -> Iterator[MapSource]:
    """Open the store, or connect to the service when `url` is given; closed at the end of the block.

    Raises
    ------
    InvalidInput
        When both a store and a service are named.

    """
    if url is not None and store is not None:
        raise InvalidInput("Both --store and --url were given.", hint="Choose one: a folder or a running service.")
    source: MapSource
    if url is not None:
        from waygraph.client import ServiceMap

        source = ServiceMap(url, api_key=api_key)
    else:
        from waygraph.local import StoreMap

        settings = settings or load_settings({"store": store})
        source = StoreMap(settings.store, settings)
    try:
        yield source
    finally:
        source.close()


def resolve_site(source: MapSource, text: str) -> str:
    """Return the key of the mapped site that `text` (a key, or any URL of the site) names; never a substring match.

    Raises
    ------
    NotFound
        When no such site is mapped; the hint lists those that are.

    """
    mapped = [summary.site for summary in source.sites()]
    key = site_key_of(text, mapped)
    if key in mapped:
        return key
    if mapped:
        shown = ", ".join(mapped[:10]) + (f" and {len(mapped) - 10} more" if len(mapped) > 10 else "")
        raise NotFound(f"Site '{key}' is not mapped.", hint=f"Mapped: {shown}. To add it: waygraph index {text}")
    raise NotFound(f"Site '{key}' is not mapped: there are no maps yet.", hint=f"Make one: waygraph index {text}")


def site_key_of(text: str, mapped: list[str]) -> str:
    """Return the key that `text` names: itself when it is one, else the host of the URL that it is."""
    return text if text in mapped else site_key(parse_start_url(text))


def is_node_id(text: str) -> bool:
    """Whether `text` is written like a node id or a prefix of one, not like a URL."""
    return bool(_NODE_ID.fullmatch(text) or _NODE_ID_PREFIX.fullmatch(text))


def resolve_state(source: MapSource, site: str, text: str) -> str:
    """Return the node id that `text` names: an id, a unique prefix of one (4 digits or more), or a URL of the site.

    A URL may be relative to the site's start URL. When several states share it, the service's rule decides which.

    Raises
    ------
    NotFound
        When the map holds no such state.
    InvalidInput
        When a prefix fits several states.

    """
    if _NODE_ID.fullmatch(text):
        return text
    if _NODE_ID_PREFIX.fullmatch(text):
        return source.node(site, text).node_id
    url = urljoin(source.site(site).start_url, text)
    found = source.locate(site, url, None)
    if found.node_id is None:
        raise NotFound(
            f"No state of '{site}' has the URL {url}.",
            hint=f'Find states with: waygraph search {site} "what you look for"',
        )
    return found.node_id
