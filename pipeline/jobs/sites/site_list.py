"""Sites of a run: start URLs, validated, one per site."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waygraph.core.errors import InvalidInput, StoreError
from waygraph.core.urls import parse_start_url, site_key

if TYPE_CHECKING:
    from waygraph.index.store import Store


@dataclass(frozen=True, slots=True)
class SiteTask:
    """One site to map: its key and its start URL."""

    site: str
    start_url: str


@dataclass(frozen=True, slots=True)
class SitePlan:
    """The sites of a run in the given order, and the URLs of sites that were named before."""

    tasks: tuple[SiteTask, ...]
    duplicates: tuple[str, ...]


def plan_sites(urls: Iterable[str]) -> SitePlan:
    """Validate every URL and keep the first of each site.

    Parameters
    ----------
    urls
        Start URLs as users write them.

    Returns
    -------
    SitePlan
        At least one site.

    Raises
    ------
    InvalidInput
        If a URL is invalid, or there is none.
    """
    tasks: dict[str, SiteTask] = {}
    duplicates: list[str] = []
    for text in urls:
        url = parse_start_url(text)
        site = site_key(url)
        if site in tasks:
            duplicates.append(url)
        else:
            tasks[site] = SiteTask(site, url)
    if not tasks:
        raise InvalidInput("No site to index.", hint="Name at least one URL, or a file of URLs.")
    return SitePlan(tuple(tasks.values()), tuple(duplicates))


def tasks_of_mapped_sites(store: Store, sites: Iterable[str]) -> tuple[SiteTask, ...]:
    """Return the tasks of mapped sites, with the start URLs of their current versions, read concurrently.

    A version that cannot be read does not affect the others: it is read again later, and its error becomes the outcome
    of its site.

    Parameters
    ----------
    store
        Where the maps are.
    sites
        Keys of sites. Repetitions are ignored.

    Returns
    -------
    tuple[SiteTask, ...]
        One per site.

    Raises
    ------
    NotFound
        If a site is not mapped.
    """
    from waygraph.index.store.backends.concurrency import (  # noqa: PLC0415 - reading a list of sites needs no store
        concurrent_map,
    )

    def start_url(site: str) -> str:
        try:
            return store.manifest(site).start_url
        except StoreError:
            return f"http://{site}/"

    keys = list(dict.fromkeys(sites))
    return tuple(map(SiteTask, keys, concurrent_map(start_url, keys)))
