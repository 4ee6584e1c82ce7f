"""The listing of a site: all pages that its sitemaps and feeds name, read once before the first page is explored."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from urllib.parse import urljoin

from msgspec import structs

from waygraph.core.settings import ExploreSettings
from waygraph.core.urls import site_key
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.records.listing import ListedPage, SiteListing
from waygraph.pipeline.explore.session.start import Start
from waygraph.pipeline.explore.sitemap.dates import telling_dates, to_text
from waygraph.pipeline.explore.sitemap.site_files import NotLoaded, SiteFiles
from waygraph.pipeline.explore.sitemap.sitemap_file import MAX_BYTES, MAX_URLS, SitemapFile, read_sitemap

#: Where a sitemap is expected if robots.txt names none.
_USUAL_PATH = "/sitemap.xml"
#: Hosts of the scope whose pages can be leads. Each costs a request, and a listing may name any number of them.
_MAX_HOSTS = 20


@dataclass(frozen=True, slots=True)
class ListingLimits:
    """Limits of the files of one site.

    Attributes
    ----------
    files
        Files that are requested.
    pages
        Pages that are kept.
    total_bytes
        Bytes of all files, as they are sent.
    seconds
        Time for all files, turns at the host included.
    file_bytes, file_urls
        Uncompressed bytes and URLs of one file.
    """

    files: int = 500
    pages: int = 200_000
    total_bytes: int = 500 * 2**20
    seconds: float = 120.0
    file_bytes: int = MAX_BYTES
    file_urls: int = MAX_URLS


async def read_listing(start: Start, explore: ExploreSettings, pacer: Pacer, stop: asyncio.Event) -> SiteListing:
    """Read the sitemaps and feeds of a site.

    Parameters
    ----------
    start
        The prepared start page.
    explore
        Settings; `sitemap` says where to look.
    pacer
        Turns at hosts.
    stop
        Set to end early.

    Returns
    -------
    SiteListing
        What was read.
    """
    limits = ListingLimits()
    # At most a quarter of the site's time.
    limits = ListingLimits(seconds=min(limits.seconds, explore.max_seconds / 4))
    files = SiteFiles(start, explore, pacer)
    reader = ListingReader(files.load, lambda url: start.scope.refuse_url(url) is None, limits)
    reading = asyncio.ensure_future(reader.read(*_sources(start, explore)))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
    finally:
        for task in (reading, stopping):
            task.cancel()
        await asyncio.gather(reading, stopping, return_exceptions=True)
    listing = reader.listing()
    if start.robots is not None:
        # The policies refuse pages of a host whose robots.txt was not read.
        hosts = {site_key(page.url): page.url for page in listing.pages}
        await start.robots.prefetch(islice(hosts.values(), _MAX_HOSTS))
    return listing


def _sources(start: Start, explore: ExploreSettings) -> tuple[list[str], list[str]]:
    """Return the files to read first, and those of them that may be missing."""
    if explore.sitemap == "off":
        return [], []
    if explore.sitemap != "auto" and start.scope.refuse_url(explore.sitemap) is None:
        return [explore.sitemap], []
    named = start.robots.sitemaps(start.url) if start.robots is not None else ()
    usual = [] if named else [_USUAL_PATH]
    return [_absolute(start.url, each) for each in (*named, *usual, *start.snapshots[1].own_lists)], [
        _absolute(start.url, each) for each in usual
    ]


def _absolute(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return address


class ListingReader:
    """Reads files one after the other, and those that they name after them.

    Parameters
    ----------
    load
        Returns the content of a file; raises NotLoaded.
    is_in_scope
        Whether a URL belongs to the site.
    limits
        The limits.
    now
        The present time, in UTC.
    """

    def __init__(
        self,
        load: Callable[[str], Awaitable[bytes]],
        is_in_scope: Callable[[str], bool],
        limits: ListingLimits,
        now: datetime | None = None,
    ) -> None:
        self._load = load
        self._is_in_scope = is_in_scope
        self._limits = limits
        self._at = to_text(now or datetime.now(UTC))
        self._pages: dict[str, ListedPage] = {}
        self._alternates: dict[str, None] = {}
        self._counters: Counter[str] = Counter()
        self._waiting: deque[str] = deque()
        self._seen: set[str] = set()
        self._bytes = 0

    async def read(self, sources: Iterable[str], guessed: Iterable[str] = ()) -> None:
        """Read files and all that they name, in their order, up to the limits.

        Parameters
        ----------
        sources
            URLs of the first files.
        guessed
            Those of them that nothing names: it is no problem if one does not exist.
        """
        self._add_files(sources)
        guesses = set(guessed)
        try:
            async with asyncio.timeout(self._limits.seconds):
                while self._waiting and not self._is_full():
                    await self._read_file(self._waiting.popleft(), guesses)
        except TimeoutError:
            self._counters["sitemap/left_out"] += 1
        self._counters["sitemap/left_out"] += len(self._waiting)
        self._waiting.clear()

    def listing(self) -> SiteListing:
        """Return what was read. Dates that say nothing are dropped and counted."""
        pages = list(self._pages.values())
        pages += (ListedPage(url) for url in self._alternates if url not in self._pages)
        pages = pages[: self._limits.pages]
        telling = telling_dates((page.lastmod for page in pages), self._at)
        for number, page in enumerate(pages):
            if page.lastmod and page.lastmod not in telling:
                self._counters["sitemap/undated"] += 1
                pages[number] = structs.replace(page, lastmod="")
        self._counters["sitemap/pages"] += len(pages)
        return SiteListing(self._at, tuple(pages), dict(sorted((+self._counters).items())))

    async def _read_file(self, url: str, guesses: set[str]) -> None:
        try:
            content = await self._load(url)
        except NotLoaded as outcome:
            if url not in guesses or outcome.reason != "unread":
                self._counters[f"sitemap/{outcome.reason}"] += 1
            if outcome.ends:
                self._counters["sitemap/left_out"] += len(self._waiting)
                self._waiting.clear()
            return
        self._bytes += len(content)
        # In a thread, since a file takes up to seconds.
        found = await asyncio.to_thread(
            read_sitemap, content, url, max_bytes=self._limits.file_bytes, max_urls=self._limits.file_urls
        )
        if found.problem == "no_sitemap" and url in guesses:
            return
        self._counters["sitemap/files"] += 1
        if found.problem:
            self._counters[f"sitemap/{found.problem}"] += 1
        self._add(found)

    def _add(self, found: SitemapFile) -> None:
        for page in found.pages:
            known = self._pages.get(page.url)
            if known is not None:
                # Feeds and sitemaps complete each other.
                name, lastmod = known.name or page.name, max(known.lastmod, page.lastmod)
                self._pages[page.url] = ListedPage(page.url, name, lastmod)
            elif self._is_own(page.url):
                if len(self._pages) >= self._limits.pages:
                    self._counters["sitemap/too_many"] += 1
                    break
                self._pages[page.url] = page
        for url in found.alternates:
            if url not in self._alternates and len(self._alternates) < self._limits.pages and self._is_own(url):
                self._alternates[url] = None
        self._add_files(found.files)

    def _add_files(self, urls: Iterable[str]) -> None:
        for url in urls:
            if url in self._seen:
                self._counters["sitemap/repeated"] += 1
            elif len(self._seen) >= self._limits.files:
                self._counters["sitemap/left_out"] += 1
            else:
                self._seen.add(url)
                self._waiting.append(url)

    def _is_own(self, url: str) -> bool:
        """Return whether a URL belongs to the site; count it if not."""
        is_own = self._is_in_scope(url)
        self._counters["sitemap/foreign"] += not is_own
        return is_own

    def _is_full(self) -> bool:
        return len(self._pages) >= self._limits.pages or self._bytes >= self._limits.total_bytes
