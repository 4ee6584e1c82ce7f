"""What does one version of a map answer? Search, locate and path, for as long as somebody holds the version."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from index.graph import InteractionGraph, Observation, Path, Recognition, Segment
from index.graph.paths import Router
from index.locate import Located, Locator
from index.store import Manifest, MapVersion
from index.vectors.multivector import MultiVector
from index.vectors.protocol import VectorIndex
from waygraph.errors import EncoderMismatch


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


class LoadedMap:
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
        """Cheapest paths over the version's graph."""
        return Router(self.version.graph)

    @cached_property
    def locator(self) -> Locator:
        """Finds states by URL and structure."""
        return Locator(self.version.graph, self.version.manifest.url_policy, self.version.recognition)

    @cached_property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """By state, the ids of other looks at it."""
        return self.version.recognition.aliases()

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

    def __init__(self, loaded: LoadedMap) -> None:
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
    def recognition(self) -> Recognition:
        """Which looks count as a state besides its recorded one."""
        return self._loaded.version.recognition

    @property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """By state, the ids of other looks at it that exploring saw; states without any are left out."""
        return self._loaded.aliases

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

    def locate(self, url: str, structure: Collection[str] | None = None) -> Located:
        """Which state shows `url` and (when known) these element hashes? See `Locator.locate`."""
        return self._loaded.locator.locate(url, structure)

    def path(self, source: str | None, target: str, allow_goto: bool = True) -> Path:
        """The cheapest path, see `Router.route` (NotFound, NoPath)."""
        return self.router.route(source, target, allow_goto=allow_goto)

    def share(self) -> OpenMap:
        """Another share of the same version, to be closed by itself."""
        return OpenMap(self._loaded)

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
