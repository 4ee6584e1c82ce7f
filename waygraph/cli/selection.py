"""Selection of the map source, the sites and the states that a command line names.

Commands such as `search`, `path`, `teleport`, `sites` and `show` read a map in the same way from a store and from a
running service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from waygraph.cli.options import load_settings
from waygraph.core.errors import InvalidInput, NotFound
from waygraph.core.settings import Settings
from waygraph.core.urls import parse_start_url, site_key

if TYPE_CHECKING:
    from waygraph.client.map_source import MapSource
    from waygraph.index.store import Store

#: Help text of an argument that names a state.
STATE_HELP = "A node id, a unique prefix of one, or a URL of the site."

_NODE_ID = re.compile(r"[0-9a-f]{32}")
_NODE_ID_PREFIX = re.compile(r"[0-9a-f]{4,31}")
#: Limit of site keys in an error message.
_SHOWN_SITES = 10


# ---- sources ---------------------------------------------------------------------------------------------------------


def check_one_source(store: str | None, url: str | None) -> None:
    """Refuse a command line that names both a store and a service."""
    if url is not None and store is not None:
        raise InvalidInput("Both --store and --url were given.", hint="Use one: a store, or a running service.")


@contextmanager
def open_source(
    store: str | None, url: str | None, api_key: str | None, *, settings: Settings | None = None
) -> Iterator[MapSource]:
    """Open a store, or connect to a service, for the time of the block.

    Parameters
    ----------
    store
        Value of `--store`.
    url
        Value of `--url`; the service to use in place of a store.
    api_key
        API key of the service.
    settings
        Settings with the store; None: loaded from `store` and the environment.

    Yields
    ------
    MapSource
        The source of maps.

    Raises
    ------
    InvalidInput
        If both a store and a service are named.
    """
    check_one_source(store, url)
    source: MapSource
    if url is not None:
        from waygraph.client.service import ServiceMap

        source = ServiceMap(url, api_key=api_key)
    else:
        from waygraph.sdk.local import StoreMap

        settings = settings or load_settings({"store": store})
        source = StoreMap(settings.store, settings)
    try:
        yield source
    finally:
        source.close()


def open_mapped_site(store: str | None, site: str) -> tuple[Store, str]:
    """Open the store of the option `--store`; return it with the key of a site that it contains."""
    from waygraph.index.store import Store

    opened = Store.open(load_settings({"store": store}).store)
    return opened, mapped_site(site, opened.sites())


# ---- sites -----------------------------------------------------------------------------------------------------------


def site_key_of(text: str, mapped: Sequence[str]) -> str:
    """Return the site key that `text` names: the text if it is one of `mapped`, else the host of the URL."""
    return text if text in mapped else site_key(parse_start_url(text))


def mapped_site(text: str, mapped: Sequence[str]) -> str:
    """Return the key of the mapped site that `text` names. Parts of a key do not match.

    Parameters
    ----------
    text
        A site key, or any URL of the site.
    mapped
        Keys of the mapped sites.

    Returns
    -------
    str
        One of `mapped`.

    Raises
    ------
    NotFound
        If the site is not mapped; the hint lists mapped sites.
    """
    key = site_key_of(text, mapped)
    if key in mapped:
        return key
    if not mapped:
        raise NotFound(f"Site '{key}' is not mapped: there are no maps yet.", hint=f"Run: waygraph index {text}")
    more = f" and {len(mapped) - _SHOWN_SITES} more" if len(mapped) > _SHOWN_SITES else ""
    raise NotFound(
        f"Site '{key}' is not mapped.",
        hint=f"Mapped: {', '.join(mapped[:_SHOWN_SITES])}{more}. To add it: waygraph index {text}",
    )


def open_selected_sites(location: str, texts: Sequence[str], *, every: bool) -> tuple[Store, list[str]]:
    """Open a store; return it with the keys of the mapped sites that a command works on.

    Parameters
    ----------
    location
        Location of the store.
    texts
        Sites that the command line names, by key or URL.
    every
        Whether `--all` was given.

    Returns
    -------
    tuple of Store and list of str
        The store, and at least one key.

    Raises
    ------
    InvalidInput
        If both sites and `--all` were given, or neither.
    NotFound
        If a site is not mapped, or there are no maps.
    """
    from waygraph.index.store import Store

    if every == bool(texts):
        raise InvalidInput(
            "Both sites and --all were given." if every else "No site was named.",
            hint="Name mapped sites, or use --all. See: waygraph sites",
        )
    store = Store.open(location)
    mapped = store.sites()
    keys = list(mapped) if every else [mapped_site(text, mapped) for text in texts]
    if not keys:
        raise NotFound("There are no maps yet.", hint="Run: waygraph index https://example.org")
    return store, keys


def resolve_site(source: MapSource, text: str) -> str:
    """Return the key of the mapped site that `text` names, see `mapped_site`; StoreError if its map is damaged."""
    mapped = [summary.site for summary in source.sites()]
    try:
        return mapped_site(text, mapped)
    except NotFound:
        # A map that cannot be read is not listed: then this says why.
        with suppress(NotFound):
            source.site(site_key_of(text, mapped))
        raise


# ---- states ----------------------------------------------------------------------------------------------------------


def is_node_id(text: str) -> bool:
    """Return whether `text` has the form of a node id or of a prefix of one, rather than of a URL."""
    return bool(_NODE_ID.fullmatch(text) or _NODE_ID_PREFIX.fullmatch(text))


def resolve_state(source: MapSource, site: str, text: str) -> str:
    """Return the id of the state that `text` names.

    Parameters
    ----------
    source
        The source of maps.
    site
        Key of the site.
    text
        A node id, a unique prefix of one (4 digits or more), or a URL of the site, absolute or relative to its start
        URL. If several states have the URL, `locate` decides between them.

    Returns
    -------
    str
        The node id.

    Raises
    ------
    NotFound
        If the map has no such state.
    InvalidInput
        If several states have the prefix.
    """
    if _NODE_ID.fullmatch(text):
        return text
    if _NODE_ID_PREFIX.fullmatch(text):
        return source.node(site, text).node_id
    url = urljoin(source.site(site).start_url, text)
    located = source.locate(site, url, None)
    if located.node_id is None:
        raise NotFound(
            f"No state of '{site}' has the URL {url}.",
            hint=f'Find states with: waygraph search {site} "what you look for"',
        )
    return located.node_id
