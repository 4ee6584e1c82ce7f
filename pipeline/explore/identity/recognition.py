"""Recognition of known states: stores what was learned about a site and applies the rules of `recognition_rules`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from waygraph.core.urls import UrlPolicy, normalize_url
from waygraph.index.graph import Merge
from waygraph.index.graph.recognition import SAME_CONTENT
from waygraph.pipeline.browser.page.features import Features, features
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.features import (
    content_key,
    feature_change,
    have_same_links,
    without_volatile,
)
from waygraph.pipeline.explore.identity.parameters import VolatileParameters
from waygraph.pipeline.explore.identity.rebase import noise_between
from waygraph.pipeline.explore.identity.recognition_rules import (
    Arrival,
    InPageChange,
    UrlNoise,
    differs_in_noise_only,
    in_page_rule,
    is_same_page,
    is_similar_page,
    is_size_explained,
    shows_change,
)
from waygraph.pipeline.explore.identity.skeleton import Skeleton
from waygraph.pipeline.explore.identity.templates import content_template, is_own_address
from waygraph.pipeline.explore.identity.thresholds import MAX_NOISE_PER_URL
from waygraph.pipeline.explore.records.noise import Noise

#: URL keys that are cached. Sites link to the same pages again and again.
_MAX_CACHED_KEYS = 50_000


@dataclass(frozen=True, slots=True)
class Placement:
    """The state that a snapshot belongs to.

    Attributes
    ----------
    node_id
        Id of a known state, or of the snapshot itself if it is a new state.
    merge
        Why the snapshot counts as a known state with another id; None if the ids are equal.
    change
        For `Recogniser.add`: how in-page actions changed the page until it showed the new state; None if a document was
        loaded.
    content
        For `Recogniser.add`: `content_key` of the new state; None if it has too little content.
    """

    node_id: str
    merge: Merge | None = None
    change: InPageChange | None = field(default=None, compare=False)
    content: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class _KnownState:
    """The part of a known state that is kept in memory.

    Attributes
    ----------
    url
        Normalised URL.
    size
        Number of exposed elements.
    content
        `content_key` of its snapshot.
    canonical
        See `Snapshot.canonical`.
    """

    url: str
    size: int
    content: str | None
    canonical: str


class Recogniser:
    """Known states of one site, and the noise of its pages.

    Deterministic: all methods must be called in the order of commits. The rules and their order are described in
    `waygraph.pipeline.explore.identity.recognition_rules`.

    Parameters
    ----------
    mode
        `exact` recognises states by node id alone; `tolerant` also merges snapshots that differ in noise only.
    url_policy
        Which parts of a URL name a page.
    snapshot_of
        Returns the recorded snapshot of a known state, by id. Snapshots are not stored here: a site may have many.
    skeleton
        Collapses functionally equivalent pages; None keeps them all.
    """

    def __init__(
        self,
        mode: Literal["exact", "tolerant"],
        url_policy: UrlPolicy,
        snapshot_of: Callable[[str], Snapshot],
        *,
        skeleton: Skeleton | None = None,
    ) -> None:
        self._tolerant = mode == "tolerant"
        self._url_policy = url_policy
        self._snapshot_of = snapshot_of
        self.skeleton = skeleton
        """Collapses functionally equivalent pages; None if they are kept."""
        self.parameters = VolatileParameters(enabled=self._tolerant)
        """Parts of URLs that comparisons leave out."""
        self._url_keys: dict[tuple[str, bool], str] = {}
        self._url_keys_version = 0
        self._source_features: tuple[str, Features] | None = None
        self._known: dict[str, _KnownState] = {}
        self._states_at: dict[str, list[str]] = {}
        self._loaded: dict[str, str] = {}
        self._same_pages: dict[str, str] = {}
        """By URL key of pages that were loaded and merged as `same_content`, the state that they show."""
        self._by_content: dict[tuple[str, str], list[str]] = {}
        """States by content, with the template of their URL or their canonical URL."""
        self._noise: dict[str, UrlNoise] = {}
        self._changes: dict[str, InPageChange] = {}

    def url_key(self, url: str) -> str:
        """Return the normalised URL of a page without its volatile parts: a key to compare loaded pages by."""
        return self._key(url, proved=False)

    def link_key(self, url: str) -> str:
        """Return the key of a page that was perhaps not loaded: without the parts that loads proved to be volatile."""
        return self._key(url, proved=True)

    def _key(self, url: str, *, proved: bool) -> str:
        if self._url_keys_version != self.parameters.version or len(self._url_keys) > _MAX_CACHED_KEYS:
            self._url_keys, self._url_keys_version = {}, self.parameters.version
        if (key := self._url_keys.get((url, proved))) is None:
            key = self.parameters.strip(normalize_url(url, self._url_policy), proved=proved)
            self._url_keys[url, proved] = key
        return key

    # ---- placing -------------------------------------------------------------------------------------------------

    def place(
        self,
        snapshot: Snapshot,
        *,
        source: Snapshot | None,
        arrival: Arrival,
        changed: Mapping[str, int] | None = None,
        session: str = "",
    ) -> Placement:
        """Find the state that a snapshot belongs to.

        Parameters
        ----------
        snapshot
            Snapshot of the page that an action led to.
        source
            Recorded snapshot of the state that was acted on; None for the start page.
        arrival
            `load` if a document was loaded in the prepared session, `in_page` if the document stayed.
        changed
            `feature_change` between the snapshots of this very document before and after the action. Pass it if these
            differ from `source` and `snapshot`: what both share is no consequence of the action.
        session
            Name of the session that the page leaves, see `SessionValues`; empty: the prepared one.

        Returns
        -------
        Placement
            A known state, or the snapshot's own id.
        """
        if snapshot.id in self._known:
            return Placement(snapshot.id)
        merge = change = content = None
        if self._tolerant:
            if arrival == "load":
                merge = self._merge_reload(snapshot, session)
            elif source is None or self.url_key(source.url) != self.url_key(snapshot.url):
                merge = self._merge_other_url(snapshot)
            else:
                change = self._in_page_change(snapshot, source, changed)
                merge = self._merge_same_url(snapshot, source, change)
            if merge is None:
                content = content_key(snapshot)
                merge = self._merge_same_content(snapshot, content)
                if merge is not None and arrival == "load":
                    self._same_pages.setdefault(self.url_key(snapshot.url), merge.kept)
        if merge is None and self.skeleton is not None:
            merge = self.skeleton.place(snapshot, source)
        if merge is None:
            return Placement(snapshot.id, change=change, content=content)
        return Placement(merge.kept, merge)

    def _merge_reload(self, snapshot: Snapshot, session: str) -> Merge | None:
        """Apply the rules `reload` and `volatile_parameters`, and learn from the two loads."""
        key = self.url_key(snapshot.url)
        kept = self._loaded.get(_in_session(key, session))
        if kept is None and session and (plain := self._loaded.get(key)) and self.is_reload_of(snapshot, plain):
            return Merge(plain, snapshot.id, "reload", snapshot.url)
        if kept is None:
            return None
        known = self._snapshot_of(kept)
        if known.url != snapshot.url and not is_same_page(known, snapshot):
            self.parameters.note_distinct_pages(known.url, snapshot.url)
            return None
        if known.url != snapshot.url:
            self.parameters.note_same_page(known.url, snapshot.url)
        self.learn(known, snapshot)
        reason = "reload" if known.url == snapshot.url else "volatile_parameters"
        return Merge(kept, snapshot.id, reason, snapshot.url)

    def _merge_other_url(self, snapshot: Snapshot) -> Merge | None:
        """Apply the rules `volatile` and `volatile_parameters` to a page with a new URL whose document stayed."""
        key = self.url_key(snapshot.url)
        noise = self._known_noise(snapshot.url)
        for kept in self._states_at.get(key, ()):
            known = self._known[kept]
            # The size is known without reading the snapshot of the state.
            if is_size_explained(len(snapshot.structure), known.size, noise) and differs_in_noise_only(
                self._snapshot_of(kept), snapshot, noise
            ):
                reason = "volatile" if known.url == snapshot.url else "volatile_parameters"
                return Merge(kept, snapshot.id, reason, snapshot.url)
        return None

    def _in_page_change(self, snapshot: Snapshot, source: Snapshot, changed: Mapping[str, int] | None) -> InPageChange:
        """Return what the action and the in-page actions that led to `source` changed together, without noise."""
        noise = self._known_noise(snapshot.url)
        anchor, so_far = self._changes.get(source.id, InPageChange(source.id, Features()))
        total = Features(so_far)
        total.update(feature_change(self._features_of(source), features(snapshot)) if changed is None else changed)
        total = without_volatile(Features({name: count for name, count in total.items() if count}), noise.features)
        return InPageChange(anchor, total)

    def _merge_same_url(self, snapshot: Snapshot, source: Snapshot, change: InPageChange) -> Merge | None:
        """Apply the rules `volatile` and `same_change` to a page whose document and URL stayed."""
        key = self.url_key(snapshot.url)
        noise = self._known_noise(snapshot.url)
        if not noise.elements:
            return None
        anchor, total = change
        for kept in (source.id, *self._states_at.get(key, ())):
            known_anchor, known_change = self._changes.get(kept, InPageChange(kept, Features()))
            if known_anchor != anchor or without_volatile(known_change, noise.features) != total:
                continue
            reason = in_page_rule(
                self._snapshot_of(kept), snapshot, noise, changed=bool(total), left_anchor=source.id != anchor
            )
            if reason is not None:
                return Merge(kept, snapshot.id, reason, snapshot.url)
        return None

    def _merge_same_content(self, snapshot: Snapshot, content: str | None) -> Merge | None:
        """Apply the rule `same_content`, and count the two URLs as a vote for a volatile parameter."""
        if content is None:
            return None
        alike = self._by_content.get((content_template(snapshot.url), content), ())
        named = self._by_content.get((snapshot.canonical, content), ()) if snapshot.canonical else ()
        confirmed = (id_ for id_ in named if is_own_address(snapshot.canonical, self._known[id_].url, snapshot.url))
        for kept in dict.fromkeys((*alike, *confirmed)):
            url = self._known[kept].url
            if url != snapshot.url and have_same_links(self._snapshot_of(kept), snapshot, self.parameters.strip):
                self.parameters.note_same_content(url, snapshot.url)
                return Merge(kept, snapshot.id, SAME_CONTENT, snapshot.url)
        return None

    def _features_of(self, source: Snapshot) -> Features:
        # Many actions of one state are placed one after the other.
        if self._source_features is None or self._source_features[0] != source.id:
            self._source_features = (source.id, features(source))
        return self._source_features[1]

    # ---- queries that learn nothing ------------------------------------------------------------------------------

    def matches(self, snapshot: Snapshot, node_id: str, *, arrival: Arrival) -> bool:
        """Return whether a page shows a known state again, except for noise.

        A state that was reached by in-page actions must show all texts and elements by which it differs from the page
        as loaded.

        Parameters
        ----------
        snapshot
            Snapshot of the page.
        node_id
            Id of the state that the page should show.
        arrival
            How the page was reached.

        Returns
        -------
        bool
            Whether the page counts as the state.
        """
        if snapshot.id == node_id:
            return True
        known = self._snapshot_of(node_id)
        if not self._tolerant or self.url_key(snapshot.url) != self.url_key(known.url):
            return False
        if node_id in self._changes:
            change = self.change_of(node_id)
            return bool(self._changes[node_id].features) and shows_change(known, snapshot, change or {})
        if arrival == "load" and snapshot.url == known.url and self._loaded.get(self.url_key(snapshot.url)) == node_id:
            return True
        return is_similar_page(known, snapshot, arrival)

    def is_reload_of(self, snapshot: Snapshot, node_id: str) -> bool:
        """Return whether a page that was loaded shows the state of its URL with other noise."""
        known = self._snapshot_of(node_id)
        if not self._tolerant or snapshot.url != known.url:
            return False
        return differs_in_noise_only(known, snapshot, self._known_noise(snapshot.url))

    def loaded_state(self, url: str) -> str | None:
        """Return the state that was loaded from a URL, or from one that shows the same page."""
        key = self.url_key(url)
        loaded = self._loaded.get(key)
        if loaded is not None and self.link_key(self._known[loaded].url) != self.link_key(url):
            return None
        return loaded or self._same_pages.get(key)

    def change_of(self, node_id: str) -> Features | None:
        """Return what in-page actions changed until a state was reached, without noise; None if it is not recorded."""
        known = self._changes.get(node_id)
        if known is None:
            return None
        return without_volatile(known.features, self._known_noise(self._known[node_id].url).features)

    def noise_at(self, url: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the known noise of a URL: element hashes (first 12 characters) and features."""
        noise = self._known_noise(url)
        return frozenset(noise.elements), frozenset(noise.features)

    # ---- learning ------------------------------------------------------------------------------------------------

    def add(self, snapshot: Snapshot, placement: Placement, arrival: Arrival, session: str = "") -> None:
        """Add a snapshot as a known state. Known ids are left unchanged.

        Parameters
        ----------
        snapshot
            The snapshot.
        placement
            What `place` returned for it: its own id.
        arrival
            How the page was reached.
        session
            See `place`.
        """
        if snapshot.id in self._known:
            return
        self._known[snapshot.id] = _KnownState(
            snapshot.url, len(snapshot.structure), placement.content, snapshot.canonical
        )
        if self._tolerant:
            self.parameters.note_choices(snapshot)
            key = self.url_key(snapshot.url)
            self._states_at.setdefault(key, []).append(snapshot.id)
            if arrival == "load":
                self._loaded.setdefault(_in_session(key, session), snapshot.id)
            if placement.change is not None:
                self._changes[snapshot.id] = placement.change
            self._index_content(snapshot.id)
        if self.skeleton is not None:
            self.skeleton.add(snapshot)

    def _index_content(self, node_id: str) -> None:
        known = self._known[node_id]
        if known.content is None:
            return
        for group in filter(None, (content_template(known.url), known.canonical)):
            self._by_content.setdefault((group, known.content), []).append(node_id)

    def learn(self, first: Snapshot, again: Snapshot) -> None:
        """Learn the noise of a URL, in elements, texts and links, from two snapshots of the same state."""
        if not self._tolerant:
            return
        self.note_noise(first.url, noise_between(first, again))
        self.parameters.learn(first, again)

    def note_noise(self, url: str, noise: Noise) -> None:
        """Add elements and features that came or went at a URL although nothing was done."""
        if self._tolerant and noise:
            known = self._noise_to_extend(url)
            _add_noise(known.elements, noise.elements)
            _add_noise(known.features, noise.features)

    def _known_noise(self, url: str) -> UrlNoise:
        return self._noise.get(self.url_key(url)) or UrlNoise()

    def _noise_to_extend(self, url: str) -> UrlNoise:
        return self._noise.setdefault(self.url_key(url), UrlNoise())

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """Return everything that was learned, without snapshots, as plain JSON."""
        return {
            "loaded": self._loaded,
            "same_pages": self._same_pages,
            "known": [
                [node_id, known.url, known.size, known.content, known.canonical]
                for node_id, known in self._known.items()
            ],
            "noise": {
                key: {"elements": sorted(noise.elements), "features": sorted(noise.features)}
                for key, noise in self._noise.items()
                if noise.elements or noise.features
            },
            "changes": {node_id: [change.anchor, dict(change.features)] for node_id, change in self._changes.items()},
            "at": self._states_at,
            "parameters": self.parameters.to_checkpoint(),
            "skeleton": self.skeleton.to_checkpoint() if self.skeleton is not None else None,
        }

    def load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._known = {node_id: _KnownState(*known) for node_id, *known in checkpoint["known"]}
        self._loaded = dict(checkpoint["loaded"])
        self._same_pages = dict(checkpoint["same_pages"])
        self._states_at = {key: list(ids) for key, ids in checkpoint["at"].items()}
        self._noise = {
            key: UrlNoise(set(noise["elements"]), set(noise["features"])) for key, noise in checkpoint["noise"].items()
        }
        self._changes = {
            node_id: InPageChange(anchor, Features(change))
            for node_id, (anchor, change) in checkpoint["changes"].items()
        }
        self.parameters.load_checkpoint(checkpoint["parameters"])
        self._by_content = {}
        for node_id in self._known:
            self._index_content(node_id)
        if self.skeleton is not None:
            self.skeleton.load_checkpoint(checkpoint["skeleton"])


def _in_session(url_key: str, session: str) -> str:
    """Return the key of a page as it is in a session. No URL contains a space."""
    return f"{session} {url_key}" if session else url_key


def _add_noise(known: set[str], names: Iterable[str]) -> None:
    for name in sorted(names):
        if len(known) >= MAX_NOISE_PER_URL:
            break
        known.add(name[:12])
