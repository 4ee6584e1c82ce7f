"""Catalog of open maps: each site's current version, opened on demand, replaced when a newer one is published."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from waygraph.core.errors import EncoderMismatch, InvalidInput, NotFound, Overloaded, StoreError, WaygraphError
from waygraph.index.catalog.failures import OpeningFailures
from waygraph.index.catalog.hits import ExplainedRow, HitExplanation, SearchHit
from waygraph.index.catalog.lexical import WORDS_CANDIDATES
from waygraph.index.catalog.loaded_map import LoadedMap
from waygraph.index.catalog.locate import MIN_STRUCTURE_SIMILARITY, LocatedState
from waygraph.index.catalog.open_map import OpenMap
from waygraph.index.store import Manifest, MapVersion, Store
from waygraph.index.store.layout import LEAD_VECTORS_FILE, VECTORS_FILE, head_path
from waygraph.index.store.manifest import damaged_file
from waygraph.index.vectors.cross_site import search_across_maps
from waygraph.index.vectors.multivector import MultiVector
from waygraph.index.vectors.pooling import merge_to_fit
from waygraph.index.vectors.protocol import MapKey, ScoredNode, VectorIndex

__all__ = [
    "MIN_STRUCTURE_SIMILARITY",
    "Catalog",
    "CatalogUsage",
    "CrossSiteHits",
    "ExplainedRow",
    "HitExplanation",
    "LocatedState",
    "MakeIndex",
    "OpenMap",
    "SearchHit",
]

log = logging.getLogger(__name__)

#: Creates the empty index of a version: `lambda manifest: EdgeIndex(manifest.encoder.dim)`.
MakeIndex = Callable[[Manifest], VectorIndex]

#: Returns free memory to the system if the C library is glibc, which keeps a lot of it otherwise.
_MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)


@dataclass(frozen=True, slots=True)
class CrossSiteHits:
    """Result of a search across maps.

    Attributes
    ----------
    hits
        Pairs of site and hit, best first; ranks count from 1.
    skipped
        Sites that could not be searched, with the reason.
    """

    hits: tuple[tuple[str, SearchHit], ...]
    skipped: Mapping[str, str]

    @classmethod
    def of_best(cls, found: Iterable[tuple[str, SearchHit]], k: int, skipped: Mapping[str, str]) -> Self:
        """Return the `k` best hits of all sites, ranked anew; equal scores are ordered by site and state."""
        ordered = sorted(found, key=lambda pair: (-pair[1].score, pair[0], pair[1].node_id))[:k]
        return cls(tuple((site, replace(hit, rank=rank)) for rank, (site, hit) in enumerate(ordered, start=1)), skipped)


@dataclass(frozen=True, slots=True)
class CatalogUsage:
    """Number and size of a catalog's open maps.

    Attributes
    ----------
    maps
        Number of open maps.
    bytes
        Their estimated memory, see `OpenMap.memory_bytes`.
    evicted
        Number of maps closed so far because the memory budget was exceeded.
    """

    maps: int
    bytes: int
    evicted: int


#: Seconds that a refresh waits for one site before it goes on with the others.
REFRESH_PATIENCE_SECONDS = 10.0
#: Seconds that a request waits while others open maps.
OPEN_PATIENCE_SECONDS = 30.0


class Catalog:
    """Current versions of the maps of a store, opened on demand and replaced when a newer version is published.

    Thread-safe. A newer version is opened before the previous one is released, and a version stays open until its last
    reader has closed it. If the open maps exceed the memory budget, the least recently used ones are evicted, and
    opened again on the next request.

    Parameters
    ----------
    store
        The store.
    make_index
        Creates an empty vector index for a version. An index that already holds as many states and leads as the version
        has multi-vectors (on a server that was filled before) is searched as it is; others are filled.
    budget_bytes
        Memory for all open maps together, by `OpenMap.memory_bytes`; None: unlimited. The most recently used map stays
        open, however large it is.
    concurrent_opens
        Number of maps that requests open at the same time.
    """

    def __init__(
        self,
        store: Store,
        make_index: MakeIndex,
        *,
        budget_bytes: int | None = None,
        concurrent_opens: int = 1_000,
    ) -> None:
        self.store = store
        self._make_index = make_index
        self._budget_bytes = budget_bytes
        self._opening = threading.Semaphore(concurrent_opens)
        # Least recently used first.
        self._open: OrderedDict[str, OpenMap] = OrderedDict()
        self._open_bytes = 0
        self._evicted = 0
        #: Sites whose newest version could not be opened. Those that are open use the version before.
        self.failures = OpeningFailures()
        self._closed = False
        self._lock = threading.Lock()
        # A lock exists while somebody holds it or waits for it: callers choose the keys.
        self._site_locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._refreshing: dict[str, threading.Thread] = {}

    def sites(self) -> list[str]:
        """Return the keys of the mapped sites, sorted."""
        return sorted(self.heads())

    def heads(self) -> Mapping[str, int | StoreError]:
        """Return by mapped site the number of its current version, or why it is unknown; that is a failure, too."""
        heads = self.store.scan_heads()
        for site, head in heads.items():
            if isinstance(head, StoreError):
                self.failures.record(site, None, head)
        return heads

    @property
    def usage(self) -> CatalogUsage:
        """Number and size of the maps that are open now."""
        with self._lock:
            return CatalogUsage(len(self._open), self._open_bytes, self._evicted)

    def get_open(self, site: str) -> OpenMap | None:
        """Return the current version of a site like `open`, but without I/O; None if it is not open yet."""
        return self._share(site)

    def open(self, site: str) -> OpenMap:
        """Return the current version of a site, as of the last `refresh`; the caller closes it.

        Parameters
        ----------
        site
            Key of the site.

        Returns
        -------
        OpenMap
            The version.

        Raises
        ------
        NotFound
            If the site is not mapped.
        StoreError
            If its map is damaged.
        Overloaded
            If other maps are opened, or this one, for longer than a request can wait.
        """
        if (shared := self._share(site)) is not None:
            return shared
        # In this order, so that those who wait for one site take no place from others.
        with _acquired(self._site_lock(site), site):
            # Another thread may have opened it while this one waited for the lock.
            if (shared := self._share(site)) is not None:
                return shared
            with _acquired(self._opening, site):
                opened = self._load_checked(site, self.store.head)
            self._install(site, opened.share())
        _release_free_memory()
        return opened

    def search(
        self,
        query: MultiVector,
        k: int,
        fingerprint: str,
        *,
        sites: Collection[str] | None = None,
        words: str = "",
    ) -> CrossSiteHits:
        """Find the k states of all maps of one encoder that match a query best.

        Scoring across maps is described in `waygraph.index.vectors.cross_site`.

        A map that cannot be searched (another encoder's, damaged, removed meanwhile) does not affect the others. Maps
        are opened as needed, so the first search takes as long as opening all of them.

        Parameters
        ----------
        query
            Multi-vector of the query, shape (m, dim).
        k
            Maximum number of hits.
        fingerprint
            Fingerprint of the query's encoder.
        sites
            Keys of the sites to search; None: all.
        words
            The query in words, see `OpenMap.rescored`. Empty: the score is MaxSim alone.

        Returns
        -------
        CrossSiteHits
            The hits, and the sites that could not be searched.

        Raises
        ------
        InvalidInput
            If the query is not a finite matrix of the maps' dim, or k < 1.
        """
        best: list[tuple[str, SearchHit]] = []
        skipped: dict[str, str] = {}
        wanted = [site for site in self.sites() if sites is None or site in sites]
        for group in self._groups_by_budget(wanted, fingerprint, skipped):
            fetched = max(k, 2 * WORDS_CANDIDATES) if words else k  # of states and leads
            found: dict[str, list[ScoredNode]] = defaultdict(list)
            maps = {site: opened.searchable for site, opened in group.items()}
            for site, hit in search_across_maps(maps, query, fetched):
                found[site].append(hit)
            hits = [
                (site, hit)
                for site, opened in group.items()
                for hit in opened.rescored([*found[site], *opened.found_by_words(words)], words)
            ]
            hits.sort(key=lambda pair: (-pair[1].score, pair[0], pair[1].node_id))
            best += [
                (site, group[site].explain_hit(rank, hit, query)) for rank, (site, hit) in enumerate(hits[:k], start=1)
            ]
        return CrossSiteHits.of_best(best, k, skipped)

    def _groups_by_budget(
        self, sites: Collection[str], fingerprint: str, skipped: dict[str, str]
    ) -> Iterator[dict[str, OpenMap]]:
        """Open sites in groups, each until its maps exceed the budget, and close one group before the next is opened.

        A group may exceed the budget by its last map. Sites that cannot be searched are added to `skipped`, with the
        reason.
        """
        with ExitStack() as stack:
            group: dict[str, OpenMap] = {}
            group_bytes = 0
            for site in sites:
                try:
                    opened = self._open_checked(site, fingerprint)
                except (EncoderMismatch, StoreError, NotFound) as error:
                    skipped[site] = error.message
                    continue
                group[site] = stack.enter_context(opened)
                group_bytes += opened.memory_bytes
                if self._budget_bytes is not None and group_bytes > self._budget_bytes:
                    yield group
                    stack.close()
                    group, group_bytes = {}, 0
            yield group

    def _open_checked(self, site: str, fingerprint: str) -> OpenMap:
        opened = self.open(site)
        try:
            opened.check_encoder(fingerprint)
        except EncoderMismatch:
            opened.close()
            raise
        return opened

    def refresh(self) -> list[str]:
        """Replace open maps of which a newer version is published, and close those of removed sites.

        A version that cannot be opened is logged and added to `failures`; the previous version stays in use.

        Returns
        -------
        list of str
            Keys of the replaced and the removed sites, sorted.
        """
        with self._lock:
            opened = {site: shared.version for site, shared in self._open.items()}
        if not opened and not self.failures:
            return []
        heads = self.store.scan_heads({*opened, *self.failures})
        self.failures.forget_changed(heads, opened)
        return [
            site
            for site, version in sorted(opened.items())
            if heads.get(site) != version and self._refresh_patiently(site, version)
        ]

    def _refresh_patiently(self, site: str, version: int) -> bool:
        """Refresh a site like `_refresh_site`, in a thread: a read that does not end must not stop the other sites."""
        if site in self._refreshing:
            if self._refreshing[site].is_alive():
                return False
            del self._refreshing[site]
        changed: list[bool] = []
        thread = threading.Thread(
            target=lambda: changed.append(self._refresh_site(site, version)), name=f"refresh {site}", daemon=True
        )
        thread.start()
        thread.join(REFRESH_PATIENCE_SECONDS)
        if thread.is_alive():
            self._refreshing[site] = thread
            error = StoreError(f"The new version of '{site}' is still being read.", hint="Is its storage slow?")
            error.reason = "slow"
            self.failures.record(site, None, error)
        return any(changed)

    def _refresh_site(self, site: str, version: int) -> bool:
        """Replace the open version of a site by the current one; return whether it was replaced or removed."""
        with self._site_lock(site):
            current: int | None = None
            try:
                raw, head = self.store.read_head(site)
                if raw is None:  # the HEAD of a removed site says so
                    raise damaged_file(head_path(site), "it is missing", reason="head")
                current = head.current
                if current is not None and current != version and self._is_open(site):
                    number = current
                    self._install(site, self._load_checked(site, lambda _: number))
                    _release_free_memory()
                    return True
            except NotFound:  # removed while it was read
                current = None
            except StoreError as error:
                self.failures.record(site, current, error)
                return False
            except WaygraphError as error:  # of a Qdrant server
                log.warning("catalog/not_refreshed %s: %s", site, error)
                return False
            if current is not None:
                return False
            self._discard(site)
            return True

    def close(self) -> None:
        """Release all maps. Those in use stay open until their readers close them. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            opened, self._open = self._open, OrderedDict()
            self._open_bytes = 0
        for shared in opened.values():
            shared.close()

    def _share(self, site: str) -> OpenMap | None:
        with self._lock:
            if self._closed:
                raise RuntimeError("The catalog is closed.")
            # Under the lock, the catalog's own reference keeps the version from being closed meanwhile.
            kept = self._open.get(site)
            if kept is None:
                return None
            self._open.move_to_end(site)
            return kept.share()

    def _is_open(self, site: str) -> bool:
        with self._lock:
            return site in self._open

    def _site_lock(self, site: str) -> threading.Lock:
        with self._lock:
            return self._site_locks.setdefault(site, threading.Lock())

    def _load_checked(self, site: str, current: Callable[[str], int]) -> OpenMap:
        """Load the current version of a site. Whatever is wrong with it is a StoreError, recorded in `failures`."""
        try:
            number = current(site)
        except StoreError as error:
            self.failures.record(site, None, error)
            raise
        try:
            self.failures.raise_recent(site, number)
            return self._load(site, number)
        except StoreError as error:
            self.failures.record(site, number, error)
            raise
        except InvalidInput as error:  # of the index: the request has nothing to do with it
            failure: Exception = error
        except WaygraphError:
            raise
        except Exception as error:  # noqa: BLE001 - nothing in the files of one site may end the refresh of the others
            failure = error
        reported = StoreError(f"The map of '{site}' cannot be opened: {failure!r}.", hint="See: waygraph store verify")
        reported.reason = "unexpected"
        self.failures.record(site, number, reported)
        raise reported from failure

    def _load(self, site: str, number: int) -> OpenMap:
        version = self.store.read(site, number)
        index = self._make_index(version.manifest)
        try:
            if len(index) != len(version.pages) + len(version.lead_pages):
                index.add(_indexable_pages(version))
                index.compact()
        except BaseException:
            index.close()
            raise
        return OpenMap(LoadedMap(version, index))

    def _install(self, site: str, opened: OpenMap) -> None:
        """Make a version the current one of its site, and evict maps until the budget is met."""
        with self._lock:
            if self._closed:
                gone = [opened]
            else:
                gone = self._remove(site)
                self._open[site] = opened
                self._open_bytes += opened.memory_bytes
                while self._budget_bytes is not None and self._open_bytes > self._budget_bytes and len(self._open) > 1:
                    least_recent = next(each for each in self._open if each != site)
                    gone += self._remove(least_recent)
                    self._evicted += 1
        self.failures.forget(site)
        for each in gone:
            each.close()

    def _discard(self, site: str) -> None:
        with self._lock:
            gone = self._remove(site)
        self.failures.forget(site)
        for each in gone:
            each.close()

    def _remove(self, site: str) -> list[OpenMap]:
        """Remove the version of a site. The caller holds the lock, and closes the version after releasing it."""
        before = self._open.pop(site, None)
        if before is None:
            return []
        self._open_bytes -= before.memory_bytes
        return [before]


@contextmanager
def _acquired(lock: threading.Lock | threading.Semaphore, site: str) -> Iterator[None]:
    """Hold a lock in the block; raise Overloaded if it is not free for long."""
    if not lock.acquire(timeout=OPEN_PATIENCE_SECONDS):
        raise Overloaded(f"The map of '{site}' waits to be opened.", hint="Send it again a little later.")
    try:
        yield
    finally:
        lock.release()


def map_key(manifest: Manifest) -> MapKey:
    """Return the key of a version's vectors, which differs from those of all other versions, in other stores too."""
    hashes = [manifest.files[name].sha256 for name in (VECTORS_FILE, LEAD_VECTORS_FILE) if name in manifest.files]
    content = " ".join((manifest.encoder.fingerprint, *hashes))
    return MapKey(manifest.site, manifest.version, hashlib.sha256(content.encode()).hexdigest()[:32])


def _release_free_memory() -> None:
    """Return memory to the system that only reading a version needed (tables, float32 vectors).

    Without this, a process keeps twice the memory of its open maps.
    """
    pa.default_memory_pool().release_unused()
    if _MALLOC_TRIM is not None:
        _MALLOC_TRIM(0)


def _indexable_pages(version: MapVersion) -> Iterator[tuple[str, MultiVector]]:
    """Yield the multi-vectors of a version. Pages with more rows than engines can hold get merged rows."""
    for name, page in chain(version.pages.items(), version.lead_pages.items()):
        rows = merge_to_fit(page.vectors)
        if len(rows) < len(page.vectors):
            log.warning(
                "State '%s' of '%s' has %d vectors; it is indexed by %d merged ones.",
                name, version.manifest.site, len(page.vectors), len(rows),
            )  # fmt: skip
        yield name, rows.astype(np.float32, copy=False)
