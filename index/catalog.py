"""What do the published maps answer right now? Opened versions, kept fresh, never closed under a reader."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from index.graph import (
    InteractionGraph,
    Node,
    Observation,
    Path,
    Segment,
    node_id,
    normalize_url,
    similarity,
    url_template,
)
from index.graph.paths import Router
from index.store import Manifest, MapVersion, Store
from index.vectors.multivector import MultiVector
from index.vectors.protocol import VectorIndex
from waygraph.errors import EncoderMismatch, NotFound, StoreError

log = logging.getLogger(__name__)

#: Makes the empty index of a version: `lambda manifest: EdgeIndex(manifest.encoder.dim)`.
MakeIndex = Callable[[Manifest], VectorIndex]

#: Below this Jaccard similarity two structures are not taken for the same state. Pages of one template share their
#: frame (navigation, header, footer), which alone can make up a third of their elements.
MIN_STRUCTURE_SIMILARITY = 0.5

LocateRule = Literal["exact", "structure", "url", "none"]


@dataclass(frozen=True, slots=True)
class Match:
    """Why a state was found: the row of its multi-vector that earned most of the score.

    Attributes
    ----------
    text : what the row encodes.
    score : the row's best product with a query row.
    segments : the visible texts the row was made of, with their boxes; may be empty.

    """

    text: str
    score: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class FoundNode:
    """One search hit; `score` is MaxSim as the mean over query rows."""

    rank: int
    node_id: str
    url: str
    title: str
    score: float
    matched: Match


@dataclass(frozen=True, slots=True)
class Located:
    """Which state a page shows, which rule decided, and how sure that is (see `OpenMap.locate`)."""

    node_id: str | None
    rule: LocateRule
    confidence: float


class _LoadedMap:
    """One version in memory, shared by all who have it open; its index is closed when the last one lets go."""

    def __init__(self, version: MapVersion, index: VectorIndex) -> None:
        self.version = version
        self.index = index
        # Half the memory, and nothing lost: the store holds float16.
        self.vectors = {name: page.vectors.astype(np.float16) for name, page in version.pages.items()}
        self.rows = {name: (page.rows, page.segments) for name, page in version.pages.items()}
        self._users: set[object] = set()

    @cached_property
    def router(self) -> Router:
        return Router(self.version.graph)

    @cached_property
    def by_url(self) -> Mapping[str, list[Node]]:
        """States by URL, the one to assume first: addressable, then least deep."""
        grouped: dict[str, list[Node]] = {}
        for node in sorted(self.version.graph.nodes.values(), key=lambda n: (not n.addressable, n.depth, n.id)):
            grouped.setdefault(node.url, []).append(node)
        return grouped

    @cached_property
    def by_template(self) -> Mapping[str, list[Node]]:
        """States by URL template, in the same order."""
        grouped: dict[str, list[Node]] = {}
        for nodes in self.by_url.values():
            grouped.setdefault(url_template(nodes[0].url), []).extend(nodes)
        return grouped

    def share(self) -> Callable[[], None]:
        """Count one more user; returns what gives that share back."""
        user = object()
        self._users.add(user)
        return lambda: self._give_back(user)

    def _give_back(self, user: object) -> None:
        # Garbage collection may call this in the middle of anything, also of itself: so no lock, but single steps that
        # are atomic. Two users who leave at once may both find the room empty; closing twice is allowed.
        self._users.discard(user)
        if not self._users:
            self.index.close()


class OpenMap:
    """One opened version of a site's map, valid until it is closed, whatever is published or removed meanwhile.

    Close it, use it as a context manager, or drop it: its share of the version is then given back. Thread-safe.
    """

    def __init__(self, loaded: _LoadedMap) -> None:
        self._loaded = loaded
        self._release = weakref.finalize(self, loaded.share())

    @property
    def site(self) -> str:
        """Key of the site."""
        return self.manifest.site

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.manifest.version

    @property
    def manifest(self) -> Manifest:
        """What the version says about itself."""
        return self._loaded.version.manifest

    @property
    def graph(self) -> InteractionGraph:
        """States and edges."""
        return self._loaded.version.graph

    @property
    def observations(self) -> Mapping[str, Observation]:
        """What states looked like, by node id."""
        return self._loaded.version.observations

    @property
    def router(self) -> Router:
        """Cheapest paths; prepared when first used."""
        return self._loaded.router

    def search(self, query: MultiVector, k: int) -> list[FoundNode]:
        """The k states that answer an encoded question best, best first. A map without vectors has no hits.

        Raises
        ------
        InvalidInput
            When the query is not a finite matrix of this map's dim, or k < 1.

        """
        hits = self._loaded.index.search(query, k)
        found = []
        for rank, hit in enumerate(hits, start=1):
            node = self.graph.nodes[hit.node_id]
            matched = self._match(hit.node_id, np.asarray(query, dtype=np.float32))
            found.append(FoundNode(rank, node.id, node.url, node.title, hit.score, matched))
        return found

    def _match(self, name: str, query: NDArray[np.float32]) -> Match:
        products = query @ self._loaded.vectors[name].astype(np.float32).T
        # MaxSim adds, for every query row, its best product: credit each to the row of the page that it came from.
        best = products.argmax(axis=1)
        credit = np.bincount(best, weights=products.max(axis=1), minlength=products.shape[1])
        credit[np.bincount(best, minlength=products.shape[1]) == 0] = -np.inf
        row = int(credit.argmax())
        rows, segments = self._loaded.rows[name]
        seen = self.observations.get(name)
        shown = seen.segments if seen is not None else ()
        boxes = tuple(shown[i] for i in segments[row] if 0 <= i < len(shown))
        return Match(rows[row], float(products[:, row].max()), boxes)

    def locate(self, url: str, structure: list[str] | None = None) -> Located:
        """Which state shows `url` and (when known) these element hashes?

        The first rule that finds one decides:

        1. `exact`: structure and normalised URL have the id of a state. Confidence 1.
        2. `structure`: the state of the same URL, or else of the same URL template, whose structure is most similar,
           at least `MIN_STRUCTURE_SIMILARITY`. Confidence is the Jaccard similarity.
        3. `url`: a state of that URL, addressable and least deep first. Confidence is the similarity when a structure
           was given, otherwise one over the number of states that share the URL.
        4. `none`.
        """
        canonical = normalize_url(url, self.manifest.url_policy)
        same_url = self._loaded.by_url.get(canonical, [])
        if structure is not None:
            exact = node_id(structure, canonical)
            if exact in self.graph:
                return Located(exact, "exact", 1.0)
            for candidates in (same_url, self._loaded.by_template.get(url_template(canonical), [])):
                likeness = [similarity(structure, node.structure) for node in candidates]
                best = max(likeness, default=0.0)
                if best >= MIN_STRUCTURE_SIMILARITY:
                    return Located(candidates[likeness.index(best)].id, "structure", best)
        if not same_url:
            return Located(None, "none", 0.0)
        likely = same_url[0]
        sure = 1 / len(same_url) if structure is None else similarity(structure, likely.structure)
        return Located(likely.id, "url", sure)

    def path(self, source: str | None, target: str, allow_goto: bool = True) -> Path:
        """The cheapest path, see `Router.route` (NotFound, NoPath)."""
        return self.router.route(source, target, allow_goto=allow_goto)

    def check_encoder(self, fingerprint: str) -> None:
        """Refuse queries of another encoder than the one that made this map (EncoderMismatch)."""
        encoder = self.manifest.encoder
        if encoder.fingerprint != fingerprint:
            raise EncoderMismatch(
                f"The map of '{self.site}' was made by encoder '{encoder.name}' ({encoder.fingerprint}); "
                f"the query's is {fingerprint}.",
                hint="Use the encoder that made the map, or index the site again with this one.",
            )

    def close(self) -> None:
        """Give this share of the version back. Closing twice is allowed; what was read from it stays valid."""
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
            self._keep(site, OpenMap(mine._loaded))  # noqa: SLF001 - a second share of the same version
            return mine

    def refresh(self) -> list[str]:
        """Replace opened maps of which a newer version is published, drop those of removed sites.

        Returns the keys of both, sorted. A version that cannot be opened is logged and kept in `failures`; the version
        before it goes on answering.
        """
        with self._lock:
            opened = {site: shared.version for site, shared in self._open.items()}
        changed = []
        for site, version in sorted(opened.items()):
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
            return OpenMap(kept._loaded) if kept is not None else None  # noqa: SLF001

    def _site_lock(self, site: str) -> threading.Lock:
        with self._lock:
            return self._site_locks.setdefault(site, threading.Lock())

    def _load(self, site: str, number: int) -> OpenMap:
        version = self.store.read(site, number)
        index = self._make_index(version.manifest)
        try:
            if len(index) != len(version.pages):
                index.add((name, page.vectors) for name, page in version.pages.items())
        except BaseException:
            index.close()
            raise
        return OpenMap(_LoadedMap(version, index))

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
