"""What do the published maps answer right now? Opened versions, kept fresh, never closed under a reader."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from index.locate import MIN_STRUCTURE_SIMILARITY, Located
from index.openmap import FoundNode, LoadedMap, Match, MatchedPart, OpenMap
from index.store import Manifest, MapVersion, Store
from index.store.layout import VECTORS
from index.vectors.across import search_across
from index.vectors.multivector import MultiVector
from index.vectors.pooling import fitting
from index.vectors.protocol import MapKey, VectorIndex
from waygraph.errors import EncoderMismatch, NotFound, StoreError

__all__ = [
    "MIN_STRUCTURE_SIMILARITY",
    "Catalog",
    "FoundEverywhere",
    "FoundNode",
    "Held",
    "Located",
    "MakeIndex",
    "Match",
    "MatchedPart",
    "OpenMap",
]

log = logging.getLogger(__name__)

#: Makes the empty index of a version: `lambda manifest: EdgeIndex(manifest.encoder.dim)`.
MakeIndex = Callable[[Manifest], VectorIndex]


@dataclass(frozen=True, slots=True)
class FoundEverywhere:
    """What a search across all maps found.

    Attributes
    ----------
    hits : (site, hit), best first, ranks from 1.
    skipped : sites that could not be searched, and why.

    """

    hits: tuple[tuple[str, FoundNode], ...]
    skipped: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Held:
    """What a catalog has open.

    Attributes
    ----------
    maps : how many.
    bytes : about what they take in memory, see `OpenMap.held_bytes`.
    let_go : how many were closed so far because the budget was used up.

    """

    maps: int
    bytes: int
    let_go: int


class Catalog:
    """The maps of a store, each opened when it is first asked for and replaced when a newer version is published.

    Thread-safe. A version is opened before the one before it is let go, and stays open until its last reader has
    closed it. Where open maps take more than the budget, those that were asked for longest ago are let go, and opened
    again when somebody asks.

    Parameters
    ----------
    store : where the maps are.
    budget_bytes : what open maps may take together, by `OpenMap.held_bytes`; nothing: any amount. The map that was
        asked for last stays open, however large it is.
    make_index : makes an empty vector index for a version. One that already holds as many states as the version has
        multi-vectors (a server that was filled before) is searched as it is; others are filled.

    """

    def __init__(self, store: Store, make_index: MakeIndex, *, budget_bytes: int | None = None) -> None:
        self.store = store
        self._make_index = make_index
        self._budget_bytes = budget_bytes
        # Those asked for longest ago come first.
        self._open: OrderedDict[str, OpenMap] = OrderedDict()
        self._held_bytes = 0
        self._let_go = 0
        self._failed: dict[str, StoreError] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._site_locks: dict[str, threading.Lock] = {}

    def sites(self) -> list[str]:
        """Keys of the mapped sites, sorted."""
        return self.store.sites()

    @property
    def failures(self) -> Mapping[str, StoreError]:
        """Sites whose newest version could not be opened by `refresh`, and why; they answer from the version before."""
        with self._lock:
            return dict(self._failed)

    @property
    def held(self) -> Held:
        """What is open now."""
        with self._lock:
            return Held(len(self._open), self._held_bytes, self._let_go)

    def open_now(self, site: str) -> OpenMap | None:
        """Like `open`, but only what is open already, at once."""
        return self._share(site)

    def open(self, site: str) -> OpenMap:
        """The current version of a site, as of the last `refresh`; give it back with `close`.

        Raises
        ------
        NotFound
            When the site is not mapped.
        StoreError
            When its map is damaged.

        """
        if (shared := self._share(site)) is not None:
            return shared
        with self._site_lock(site):
            # Another thread may have opened it while this one waited.
            if (shared := self._share(site)) is not None:
                return shared
            mine = self._load(site, self.store.head(site))
            self._keep(site, mine.share())
        _give_back_spare_memory()
        return mine

    def search(
        self, query: MultiVector, k: int, fingerprint: str, *, sites: Collection[str] | None = None
    ) -> FoundEverywhere:
        """The k states of all maps (of `sites`) of one encoder that answer a question best, see `index.vectors.across`.

        A map that cannot be searched (another encoder's, damaged, removed meanwhile) does not keep the others from
        answering. Maps are opened as they are needed, so that the first search takes as long as opening all of them.

        Raises
        ------
        InvalidInput
            When the query is not a finite matrix of the maps' dim, or k < 1.

        """
        best: list[tuple[str, FoundNode]] = []
        skipped: dict[str, str] = {}
        asked = [site for site in self.sites() if sites is None or site in sites]
        for opened in self._within_budget(asked, fingerprint, skipped):
            found = search_across({site: each.searchable for site, each in opened.items()}, query, k)
            best += [(site, opened[site].found(rank, hit, query)) for rank, (site, hit) in enumerate(found, start=1)]
        best.sort(key=lambda pair: (-pair[1].score, pair[0], pair[1].node_id))
        return FoundEverywhere(
            tuple((site, replace(hit, rank=rank)) for rank, (site, hit) in enumerate(best[:k], start=1)), skipped
        )

    def _within_budget(
        self, sites: Collection[str], fingerprint: str, skipped: dict[str, str]
    ) -> Iterator[dict[str, OpenMap]]:
        """Sites, opened, in as few groups as the budget allows; one group's maps are closed before the next is begun.

        Who cannot be searched is noted in `skipped`.
        """
        with ExitStack() as held:
            group: dict[str, OpenMap] = {}
            taken = 0
            for site in sites:
                try:
                    opened = self._fitting_map(site, fingerprint)
                except (EncoderMismatch, StoreError, NotFound) as error:
                    skipped[site] = error.message
                    continue
                group[site] = held.enter_context(opened)
                taken += opened.held_bytes
                if self._budget_bytes is not None and taken > self._budget_bytes:
                    yield group
                    held.close()
                    group, taken = {}, 0
            yield group

    def _fitting_map(self, site: str, fingerprint: str) -> OpenMap:
        opened = self.open(site)
        try:
            opened.check_encoder(fingerprint)
        except EncoderMismatch:
            opened.close()
            raise
        return opened

    def refresh(self) -> list[str]:
        """Replace opened maps of which a newer version is published, drop those of removed sites.

        Returns the keys of both, sorted. A version that cannot be opened is logged and kept in `failures`; the version
        before it goes on answering.
        """
        with self._lock:
            opened = {site: shared.version for site, shared in self._open.items()}
        if not opened:
            return []
        heads = self.store.heads(opened)
        changed = []
        for site, version in sorted(opened.items()):
            if heads.get(site) == version:
                continue
            with self._site_lock(site):
                try:
                    current = self.store.current(site)
                    if current is not None and current != version and self._is_open(site):
                        self._keep(site, self._load(site, current))
                        _give_back_spare_memory()
                        changed.append(site)
                except NotFound:  # removed while it was read
                    current = None
                except StoreError as error:
                    self._note_failure(site, error)
                    continue
                if current is None:
                    self._drop(site)
                    changed.append(site)
        return changed

    def close(self) -> None:
        """Let go of all maps. Those that are in use stay open until they are closed. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            opened, self._open = self._open, OrderedDict()
            self._held_bytes = 0
        for shared in opened.values():
            shared.close()

    def _share(self, site: str) -> OpenMap | None:
        with self._lock:
            if self._closed:
                raise RuntimeError("The catalog is closed.")
            # Under the lock, the catalog's own share keeps the version from being closed meanwhile.
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

    def _load(self, site: str, number: int) -> OpenMap:
        version = self.store.read(site, number)
        index = self._make_index(version.manifest)
        try:
            if len(index) != len(version.pages):
                index.add(_fitting_pages(version))
                index.compact()
        except BaseException:
            index.close()
            raise
        return OpenMap(LoadedMap(version, index))

    def _keep(self, site: str, opened: OpenMap) -> None:
        """Make a version the current one of its site, and let go of what is beyond the budget."""
        with self._lock:
            if self._closed:
                gone = [opened]
            else:
                gone = self._removed(site)
                self._open[site] = opened
                self._held_bytes += opened.held_bytes
                while self._budget_bytes is not None and self._held_bytes > self._budget_bytes and len(self._open) > 1:
                    longest_ago = next(each for each in self._open if each != site)
                    gone += self._removed(longest_ago)
                    self._let_go += 1
            self._failed.pop(site, None)
        for each in gone:
            each.close()

    def _drop(self, site: str) -> None:
        with self._lock:
            gone = self._removed(site)
            self._failed.pop(site, None)
        for each in gone:
            each.close()

    def _removed(self, site: str) -> list[OpenMap]:
        """Take the version of a site out; the caller holds the lock, and closes it outside."""
        before = self._open.pop(site, None)
        if before is None:
            return []
        self._held_bytes -= before.held_bytes
        return [before]

    def _note_failure(self, site: str, error: StoreError) -> None:
        with self._lock:
            known = self._failed.get(site)
            self._failed[site] = error
        if known is None or known.message != error.message:
            log.error("The new version of '%s' cannot be opened, the one before stays: %s", site, error)


def vectors_key(manifest: Manifest) -> MapKey:
    """What tells the vectors of a version from all others, those of other stores included."""
    content = f"{manifest.encoder.fingerprint} {manifest.files[VECTORS].sha256}"
    return MapKey(manifest.site, manifest.version, hashlib.sha256(content.encode()).hexdigest()[:32])


#: Where the C library is glibc, what makes it return free memory to the system; it keeps a lot by itself.
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)


def _give_back_spare_memory() -> None:
    """Return what only reading a version needed (tables, wider vectors): else a process keeps twice what is open."""
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)


def _fitting_pages(version: MapVersion) -> Iterator[tuple[str, MultiVector]]:
    """The multi-vectors of a version. A page of very many rows is searched by fewer: no engine holds all of them."""
    for name, page in version.pages.items():
        rows = fitting(page.vectors)
        if len(rows) < len(page.vectors):
            log.warning(
                "State '%s' of '%s' has %d vectors; it is searched by %d that stand for them.",
                name, version.manifest.site, len(page.vectors), len(rows),
            )  # fmt: skip
        yield name, rows.astype(np.float32, copy=False)
