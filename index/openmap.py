"""What does one version of a map answer? Search, locate and path, for as long as somebody holds the version."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from index.distinctive import with_own
from index.graph import (
    Evidence,
    InteractionGraph,
    Node,
    Observation,
    Path,
    Recognition,
    Segment,
    is_equivalent,
    normalize_url,
)
from index.graph.paths import Router
from index.graph.recognition import share
from index.graph.tokens import untokened
from index.locate import Located, Locator
from index.store import Manifest, MapVersion
from index.vectors.across import SearchableMap, first_stage_of, values_of
from index.vectors.match import matched_rows
from index.vectors.multivector import EncodedPage, MultiVector
from index.vectors.protocol import ScoredNode, VectorIndex
from waygraph.errors import EncoderMismatch

if TYPE_CHECKING:
    from index.vectors.packed import PackedRows


@dataclass(frozen=True, slots=True)
class MatchedPart:
    """A row of a state that is the best one for some rows of the question.

    Attributes
    ----------
    row : its number in the state's multi-vector.
    query_rows : numbers of the question's rows (its tokens, when the encoder keeps them) that match it best.
    text : what the row encodes.
    score : its best product with one of them.
    segments : the visible texts the row was made of, with their boxes on the page; may be empty.

    """

    row: int
    query_rows: tuple[int, ...]
    text: str
    score: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Why a state was found: the rows of its multi-vector that earned the score, those that earned most first.

    Every row of the question is in exactly one part; so there is at least one.
    """

    parts: tuple[MatchedPart, ...]

    @property
    def text(self) -> str:
        """What the row encodes that earned most."""
        return self.parts[0].text

    @property
    def score(self) -> float:
        """That row's best product with a row of the question."""
        return self.parts[0].score

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The visible texts behind all parts, each once, with their boxes; may be empty."""
        return tuple(dict.fromkeys(segment for part in self.parts for segment in part.segments))


@dataclass(frozen=True, slots=True)
class FoundNode:
    """One search hit; `score` is MaxSim as the mean over query rows, `screenshot` the image's hash, or empty."""

    rank: int
    node_id: str
    url: str
    title: str
    score: float
    matched: Match
    screenshot: str = ""


class LoadedMap:
    """One version in memory, shared by all who have it open; its index is closed when the last one lets go.

    Attributes
    ----------
    vectors : float16 of shape (n, dim), by state.
    rows : for each state, what its vectors encode, and the numbers of the visible texts that they come from.
    held_bytes : about what it takes in memory, see `held_bytes`.

    """

    def __init__(self, version: MapVersion, index: VectorIndex) -> None:
        self.index = index
        # Half the memory, and nothing lost: the store holds float16. The wider rows go when the caller lets go of them.
        self.vectors = _narrow(version.pages)
        self.rows = {name: (page.rows, page.segments) for name, page in version.pages.items()}
        self.held_bytes = held_bytes(version)
        self.version = replace(version, pages={})
        self._users: set[object] = set()

    @cached_property
    def values(self) -> int:
        """How many numbers its vectors are."""
        return values_of(self.vectors)

    @cached_property
    def first_stage(self) -> PackedRows:
        """What searches across many maps look at first."""
        return first_stage_of(self.vectors)

    @cached_property
    def router(self) -> Router:
        """Cheapest paths over the version's graph."""
        return Router(self.version.graph)

    @cached_property
    def locator(self) -> Locator:
        """Finds states by URL and structure."""
        return Locator(self.version.graph, self.version.manifest.url_policy, self.version.recognition)

    @cached_property
    def addressable(self) -> Mapping[str, Sequence[str]]:
        """By URL, the states that loading it shows."""
        found: dict[str, list[str]] = {}
        for node in self.version.graph.nodes.values():
            if node.addressable:
                found.setdefault(node.url, []).append(node.id)
        return found

    @cached_property
    def by_page(self) -> Mapping[str, Sequence[str]]:
        """By URL, what looks drawn at random in it aside, the states that are shown there."""
        found: dict[str, list[str]] = {}
        for node in self.version.graph.nodes.values():
            found.setdefault(untokened(node.url), []).append(node.id)
        return found

    @cached_property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """By state, the ids of other looks at it."""
        return self.version.recognition.aliases()

    @cached_property
    def evidence(self) -> Mapping[str, Evidence]:
        """By state, what tells it from others, with what sets it apart from the rest of the site."""
        return with_own(self.version.graph, self.version.recognition.evidence)

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


#: What a state, an edge, a visible text and a vector's text take beside their characters, measured with tracemalloc on
#: maps of 500 states, and with what routing and locating add when they are first used.
_STATE_BYTES, _ELEMENT_BYTES, _EDGE_BYTES, _TEXT_BYTES, _ROW_BYTES = 1_400, 8, 800, 240, 180


def held_bytes(version: MapVersion) -> int:
    """About how many bytes a version takes in memory once it is open and used: an estimate from its counts.

    What an engine keeps besides (files of a shard, a packed copy) is not in it.
    """
    nodes, counts = version.graph.nodes.values(), version.manifest.counts
    return (
        sum(page.vectors.size * np.dtype(np.float16).itemsize for page in version.pages.values())
        + len(nodes) * _STATE_BYTES
        + sum(len(node.structure) for node in nodes) * _ELEMENT_BYTES
        + (counts.edges + counts.inherited_edges) * _EDGE_BYTES
        + sum(len(seen.segments) for seen in version.observations.values()) * _TEXT_BYTES
        + counts.rows * _ROW_BYTES
        + sum(len(text) for page in version.pages.values() for text in page.rows)
    )


def _narrow(pages: Mapping[str, EncodedPage]) -> dict[str, NDArray[np.float16]]:
    """All multi-vectors as float16, one behind the other in one piece of memory."""
    if not pages:
        return {}
    whole = np.concatenate([page.vectors for page in pages.values()], dtype=np.float16, casting="same_kind")
    ends = np.cumsum([len(page.vectors) for page in pages.values()])[:-1]
    return dict(zip(pages, np.split(whole, ends), strict=True))


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
    def held_bytes(self) -> int:
        """About what it takes in memory."""
        return self._loaded.held_bytes

    @property
    def graph(self) -> InteractionGraph:
        """States and edges."""
        return self._loaded.version.graph

    @property
    def observations(self) -> Mapping[str, Observation]:
        """What states looked like, by node id."""
        return self._loaded.version.observations

    @property
    def lineage(self) -> Mapping[str, str]:
        """What became of states of earlier versions, by their ids: their present ids, or nothing."""
        return self._loaded.version.lineage

    @property
    def recognition(self) -> Recognition:
        """Which looks count as a state besides its recorded one."""
        return self._loaded.version.recognition

    @property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """By state, the ids of other looks at it that exploring saw; states without any are left out."""
        return self._loaded.aliases

    @property
    def evidence(self) -> Mapping[str, Evidence]:
        """By state, when a page counts as it; `own` and `alone` are filled in. States without any are left out."""
        return self._loaded.evidence

    @property
    def router(self) -> Router:
        """Cheapest paths; prepared when first used."""
        return self._loaded.router

    def search(self, query: MultiVector, k: int, keep: Callable[[Node, float], bool] | None = None) -> list[FoundNode]:
        """The k states that answer an encoded question best, best first. A map without vectors has no hits.

        Parameters
        ----------
        keep : which states may be found, given the state and its score; nothing: all.

        Raises
        ------
        InvalidInput
            When the query is not a finite matrix of this map's dim, or k < 1.

        """
        # Scoring is exhaustive within a site: asking for all hits costs little more than for some.
        hits = self._loaded.index.search(query, k if keep is None else max(k, len(self._loaded.index)))
        wanted = (h for h in hits if keep is None or keep(self.graph.nodes[h.node_id], h.score))
        return [self.found(rank, hit, query) for rank, hit in enumerate(islice(wanted, k), start=1)]

    def found(self, rank: int, hit: ScoredNode, query: MultiVector) -> FoundNode:
        """A hit of this map's vectors with what it is and why it was found."""
        node = self.graph.nodes[hit.node_id]
        matched = self._match(hit.node_id, np.asarray(query, dtype=np.float32))
        seen = self.observations.get(node.id)
        screenshot = seen.screenshot if seen is not None else ""
        return FoundNode(rank, node.id, node.url, node.title, hit.score, matched, screenshot)

    @property
    def searchable(self) -> SearchableMap:
        """For searches across maps, as long as this share is open."""
        return self._loaded

    def _match(self, name: str, query: NDArray[np.float32]) -> Match:
        texts, segments = self._loaded.rows[name]
        seen = self.observations.get(name)
        shown = seen.segments if seen is not None else ()
        return Match(
            tuple(
                MatchedPart(
                    row=found.row,
                    query_rows=found.query_rows,
                    text=texts[found.row],
                    score=found.score,
                    segments=tuple(shown[i] for i in segments[found.row] if 0 <= i < len(shown)),
                )
                for found in matched_rows(query, self._loaded.vectors[name])
            )
        )

    def locate(
        self,
        url: str,
        structure: Collection[str] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> Located:
        """Which state shows `url` and (when known) these element hashes? See `Locator.locate`.

        Parameters
        ----------
        features : what the page shows besides, with counts (`pipeline.browser.features`). Where the structure has no
            state's id, the state of that URL is found that the page is equivalent to (rule `evidence`; confidence is
            the share of the state's sampled features that it shows), as long as that is one alone.

        """
        found = self._loaded.locator.locate(url, structure)
        if structure is None or features is None or found.rule == "exact":
            return found
        canonical = normalize_url(url, self.manifest.url_policy)
        states = [
            name
            for name in self._loaded.by_page.get(untokened(canonical), ())
            if is_equivalent(self.evidence.get(name), self.graph.nodes[name].url, canonical, features, structure)
        ]
        if len(states) != 1:
            return found
        return Located(states[0], "evidence", share(self.evidence[states[0]].features, features))

    def path(self, source: str | None, target: str, allow_goto: bool = True) -> Path:
        """The cheapest path, see `Router.route` (NotFound, NoPath)."""
        return self.router.route(source, target, allow_goto=allow_goto)

    def loaded_by(self, url: str) -> Sequence[str]:
        """States that loading this very URL shows."""
        return self._loaded.addressable.get(url, ())

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
