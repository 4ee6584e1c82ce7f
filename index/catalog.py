"""What do the published maps answer right now? Opened versions, kept fresh, never closed under a reader."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from index.locate import MIN_STRUCTURE_SIMILARITY, Located
from index.openmap import FoundNode, LoadedMap, Match, MatchedPart, OpenMap
from index.store import Manifest, MapVersion, Store
from index.vectors.across import search_across
from index.vectors.multivector import MultiVector
from index.vectors.pooling import fitting
from index.vectors.protocol import VectorIndex
from waygraph.errors import EncoderMismatch, NotFound, StoreError

__all__ = [
    "MIN_STRUCTURE_SIMILARITY",
    "Catalog",
    "FoundEverywhere",
    "FoundNode",
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


class Catalog:
    """The maps of a store, each opened when it is first asked for and replaced when a newer version is published.

    Thread-safe. A version is opened before the one before it is let go, and stays open until its last reader has
    closed it.

    Parameters
    ----------
    store : where the maps are.
    make_index : makes an empty vector index for a version. One that already holds as many states as the version has
        multi-vectors (a server that was filled before) is searched as it is; others are filled.

    """

    def __init__(self, store: Store, make_index: MakeIndex) -> None:
        self.store = store
        self._make_index = make_index
        self._open: dict[str, OpenMap] = {}
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
        opened: dict[str, OpenMap] = {}
        skipped: dict[str, str] = {}
        with ExitStack() as held:
            for site in self.sites():
                if sites is not None and site not in sites:
                    continue
                try:
                    opened[site] = held.enter_context(self._fitting_map(site, fingerprint))
                except (EncoderMismatch, StoreError, NotFound) as error:
                    skipped[site] = error.message
            best = search_across({site: each.searchable for site, each in opened.items()}, query, k)
            hits = tuple((site, opened[site].found(rank, hit, query)) for rank, (site, hit) in enumerate(best, start=1))
        return FoundEverywhere(hits, skipped)

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
                    current = self.store.head(site)
                    if current != version:
                        self._keep(site, self._load(site, current))
                        changed.append(site)
                except NotFound:
                    self._drop(site)
                    changed.append(site)
                except StoreError as error:
                    self._note_failure(site, error)
        return changed

    def close(self) -> None:
        """Let go of all maps. Those that are in use stay open until they are closed. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            opened, self._open = self._open, {}
        for shared in opened.values():
            shared.close()

    def _share(self, site: str) -> OpenMap | None:
        with self._lock:
            if self._closed:
                raise RuntimeError("The catalog is closed.")
            # Under the lock, the catalog's own share keeps the version from being closed meanwhile.
            kept = self._open.get(site)
            return kept.share() if kept is not None else None

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
        with self._lock:
            before = opened if self._closed else self._open.get(site)
            if not self._closed:
                self._open[site] = opened
            self._failed.pop(site, None)
        if before is not None:
            before.close()

    def _drop(self, site: str) -> None:
        with self._lock:
            before = self._open.pop(site, None)
            self._failed.pop(site, None)
        if before is not None:
            before.close()

    def _note_failure(self, site: str, error: StoreError) -> None:
        with self._lock:
            known = self._failed.get(site)
            self._failed[site] = error
        if known is None or known.message != error.message:
            log.error("The new version of '%s' cannot be opened, the one before stays: %s", site, error)


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
