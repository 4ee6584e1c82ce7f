"""Which known state is this look? Identity in tiers: exact ids, then looks that differ in noise alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from index.graph import Merge, UrlPolicy, normalize_url, similarity
from pipeline.browser.features import Features, features, text_features
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.identity.features import change, content_key, same_links, without
from pipeline.explore.identity.parameters import VolatileParameters
from pipeline.explore.identity.rebase import Noise
from pipeline.explore.identity.skeleton import Skeleton
from pipeline.explore.identity.templates import content_template

CameBy = Literal["load", "in_page"]

#: Sites link to the same pages again and again.
MAX_CACHED_KEYS = 50_000
#: Volatile elements remembered per URL; a page with more of them changes altogether.
MAX_VOLATILE = 4_000
#: Two loads of URLs that differ in a volatile parameter alone show one page only when they are at least so similar, in
#: structure, and in texts where their titles differ.
SAME_PAGE_SIMILARITY = 0.5
#: A page that was not loaded anew shows a recorded state when it is at least so similar.
STAND_IN_SIMILARITY = 0.9


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a look belongs: the id of a known state, or its own; `merge` says why when it is another state's."""

    node_id: str
    merge: Merge | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """What must be at hand of every known state: URL, number of elements, and what it shows (`content_key`)."""

    url: str
    size: int
    content: str | None


@dataclass(slots=True)
class _Noise:
    """What is known to change by itself at one URL: element hashes (first 12 characters) and features."""

    elements: set[str]
    features: set[str]


class Recogniser:
    """Tells looks at known states from looks at new ones. Deterministic: call everything in the order of commits.

    Parameters
    ----------
    mode : `exact` by node id alone; `tolerant` also merges looks that differ in noise only.
    url_policy : which parts of a URL name a page.
    look : the canonical look of a known state, by id. They are not kept here: a site may have many.
    skeleton : collapses functionally equivalent pages; nothing keeps them all.
    """

    def __init__(
        self,
        mode: Literal["exact", "tolerant"],
        url_policy: UrlPolicy,
        look: Callable[[str], Snapshot],
        *,
        skeleton: Skeleton | None = None,
    ) -> None:
        self._tolerant = mode == "tolerant"
        self._url_policy = url_policy
        self._look = look
        self.skeleton = skeleton
        """What collapses functionally equivalent pages, when they are to be collapsed."""
        self.parameters = VolatileParameters(enabled=self._tolerant)
        """Which parts of URLs are left out of comparisons."""
        self._keys: dict[str, str] = {}
        self._keys_version = 0
        self._last_source: tuple[str, Features] | None = None
        self._last_content: tuple[Snapshot, str | None] | None = None
        self._known: dict[str, _Known] = {}
        self._at: dict[str, list[str]] = {}
        self._loaded: dict[str, str] = {}
        self._contents: dict[tuple[str, str], list[str]] = {}
        self._noise: dict[str, _Noise] = {}
        self._changes: dict[str, tuple[str, Features]] = {}
        self._placing: tuple[str, str, Features] | None = None

    def key(self, url: str) -> str:
        """What equal pages have in common: the normalised URL without its volatile parts. Not always loadable."""
        if self._keys_version != self.parameters.version or len(self._keys) > MAX_CACHED_KEYS:
            self._keys, self._keys_version = {}, self.parameters.version
        if (key := self._keys.get(url)) is None:
            key = self._keys[url] = self.parameters.strip(normalize_url(url, self._url_policy))
        return key

    # ---- placing -------------------------------------------------------------------------------------------------

    def place(
        self,
        seen: Snapshot,
        *,
        source: Snapshot | None,
        came_by: CameBy,
        changed: Mapping[str, int] | None = None,
    ) -> Placement:
        """Say which state `seen` is.

        Parameters
        ----------
        source : canonical look of the state that was acted on; nothing for the start page.
        came_by : `load` when a document was loaded in the prepared session, `in_page` when the document stayed.
        changed : `features.change` between the looks at this very document before and after the action, when they are
            not those of `source` and `seen`: what both share is no consequence of the action.
        """
        if seen.id in self._known:
            return Placement(seen.id)
        if self._tolerant:
            merge = self._loaded_again(seen) if came_by == "load" else self._same_in_page(seen, source, changed)
            if merge is None:
                merge = self._same_content(seen)
            if merge is not None:
                return Placement(merge.kept, merge)
        if self.skeleton is not None and (merge := self.skeleton.place(seen, source)):
            return Placement(merge.kept, merge)
        return Placement(seen.id)

    def _loaded_again(self, seen: Snapshot) -> Merge | None:
        kept = self._loaded.get(self.key(seen.url))
        if kept is None:
            return None
        known = self._look(kept)
        if known.url == seen.url:
            self.learn(known, seen)
            return Merge(kept, seen.id, "reload", seen.url)
        if not _same_page(known, seen):
            self.parameters.distinguish(known.url, seen.url)
            return None
        self.learn(known, seen)
        return Merge(kept, seen.id, "volatile_parameters", seen.url)

    def _same_in_page(self, seen: Snapshot, source: Snapshot | None, changed: Mapping[str, int] | None) -> Merge | None:
        key = self.key(seen.url)
        noise = self._noise.get(key) or _Noise(set(), set())
        self._placing = None
        if source is None or self.key(source.url) != key:
            for kept in self._at.get(key, ()):
                if self._only_noise(seen, kept, noise) and not without(
                    change(features(self._look(kept)), features(seen)), noise.features
                ):
                    reason = "volatile" if self._known[kept].url == seen.url else "volatile_parameters"
                    return Merge(kept, seen.id, reason, seen.url)
            return None
        anchor, so_far = self._changes.get(source.id, (source.id, Features()))
        total = Features(so_far)
        total.update(change(self._features_of(source), features(seen)) if changed is None else changed)
        total = without(Features({feature: count for feature, count in total.items() if count}), noise.features)
        self._placing = (seen.id, anchor, total)
        if noise.elements:
            for kept in (source.id, *self._at.get(key, ())):
                its_anchor, its_change = self._changes.get(kept, (kept, Features()))
                if its_anchor != anchor or without(its_change, noise.features) != total:
                    continue
                differing = self._differing(seen, kept)
                unknown = sum(element[:12] not in noise.elements for element in differing)
                # What grows and shrinks is seldom seen in all its sizes.
                if 2 * unknown <= (0 if total else len(differing)):
                    return Merge(kept, seen.id, "volatile", seen.url)
                # Back at what the page showed at first counts as a change; that nothing readable changed does not.
                if (total or source.id != anchor) and self._is_of_size(seen, kept, noise):
                    return Merge(kept, seen.id, "same_change", seen.url)
        return None

    def _features_of(self, source: Snapshot) -> Features:
        """Many actions of one state are placed one after the other."""
        if self._last_source is None or self._last_source[0] != source.id:
            self._last_source = (source.id, features(source))
        return self._last_source[1]

    def _is_of_size(self, seen: Snapshot, kept: str, noise: _Noise) -> bool:
        return abs(len(seen.structure) - self._known[kept].size) <= len(noise.elements)

    def _only_noise(self, seen: Snapshot, kept: str, noise: _Noise) -> bool:
        return self._is_of_size(seen, kept, noise) and all(
            element[:12] in noise.elements for element in self._differing(seen, kept)
        )

    def _differing(self, seen: Snapshot, kept: str) -> set[str]:
        return {*seen.structure} ^ {*self._look(kept).structure}

    def _content_of(self, seen: Snapshot) -> str | None:
        """A look that was placed is added next."""
        if self._last_content is None or self._last_content[0] is not seen:
            self._last_content = (seen, content_key(seen))
        return self._last_content[1]

    def _same_content(self, seen: Snapshot) -> Merge | None:
        content = self._content_of(seen)
        if content is None:
            return None
        for kept in self._contents.get((content_template(seen.url), content), ()):
            url = self._known[kept].url
            if url != seen.url and same_links(self._look(kept), seen, self.parameters.strip):
                self.parameters.same_content(url, seen.url)
                return Merge(kept, seen.id, "same_content", seen.url)
        return None

    def agrees(self, seen: Snapshot, node_id: str, *, came_by: CameBy) -> bool:
        """Whether a page that should show a known state again does, noise aside. Learns nothing.

        A state that was found in a page must show all texts and elements by which it differs from the page as loaded.
        """
        if seen.id == node_id:
            return True
        known = self._look(node_id)
        if not self._tolerant or self.key(seen.url) != self.key(known.url):
            return False
        if node_id in self._changes:
            _, changed = self._changes[node_id]
            shown, wanted, noise = features(seen), features(known), self._noise_at(known.url).features
            return bool(changed) and all(
                shown[name] >= wanted[name] if count > 0 else shown[name] <= wanted[name]
                for name, count in without(changed, noise).items()
            )
        if came_by == "load" and seen.url == known.url and self._loaded.get(self.key(seen.url)) == node_id:
            return True
        least = SAME_PAGE_SIMILARITY if came_by == "load" else STAND_IN_SIMILARITY
        return similarity(known.structure, seen.structure) >= least

    def is_page_of(self, seen: Snapshot, node_id: str) -> bool:
        """Whether a page that was loaded shows a state of its URL, with other noise. Learns nothing."""
        known = self._look(node_id)
        if not self._tolerant or seen.url != known.url:
            return False
        noise = self._noise.get(self.key(seen.url)) or _Noise(set(), set())
        differs = change(features(known), features(seen))
        return self._only_noise(seen, node_id, noise) and not without(differs, noise.features)

    def loaded_as(self, url: str) -> str | None:
        """The state that loading a URL, or one that differs from it in volatile parts alone, showed."""
        return self._loaded.get(self.key(url))

    def change_of(self, node_id: str) -> Features | None:
        """What in-page actions changed until this state was reached, noise aside, if that is known."""
        known = self._changes.get(node_id)
        return None if known is None else without(known[1], self._noise_at(self._known[node_id].url).features)

    def noise_at(self, url: str) -> tuple[frozenset[str], frozenset[str]]:
        """Elements (first 12 characters) and features that are known to come and go by themselves at a URL."""
        noise = self._noise.get(self.key(url))
        return (frozenset(noise.elements), frozenset(noise.features)) if noise else (frozenset(), frozenset())

    # ---- learning ------------------------------------------------------------------------------------------------

    def add(self, seen: Snapshot, came_by: CameBy) -> None:
        """Take a look that `place` gave its own id into the known states. Known ids are left as they are."""
        if seen.id in self._known:
            return
        content = self._content_of(seen) if self._tolerant else None
        self._known[seen.id] = _Known(seen.url, len(seen.structure), content)
        if self._tolerant:
            self.parameters.meet(seen)
            key = self.key(seen.url)
            self._at.setdefault(key, []).append(seen.id)
            if came_by == "load":
                self._loaded.setdefault(key, seen.id)
            if self._placing is not None and self._placing[0] == seen.id:
                self._changes[seen.id] = self._placing[1:]
            self._note_content(seen.id)
        if self.skeleton is not None:
            self.skeleton.add(seen)

    def _note_content(self, node_id: str) -> None:
        known = self._known[node_id]
        if known.content is not None:
            self._contents.setdefault((content_template(known.url), known.content), []).append(node_id)

    def learn(self, first: Snapshot, again: Snapshot) -> None:
        """Compare two looks at the same state: what differs is noise of its URL, in elements, texts and links."""
        if not self._tolerant:
            return
        self.note_noise(first.url, Noise.between(first, again))
        self.parameters.learn(first, again)

    def note_noise(self, url: str, noise: Noise) -> None:
        """Take note of what came or went at `url` although nothing was done."""
        if self._tolerant and noise:
            known = self._noise_at(url)
            self._note(known.elements, noise.elements)
            self._note(known.features, noise.features)

    def _noise_at(self, url: str) -> _Noise:
        return self._noise.setdefault(self.key(url), _Noise(set(), set()))

    def _note(self, noise: set[str], found: Iterable[str]) -> None:
        for name in sorted(found):
            if len(noise) >= MAX_VOLATILE:
                break
            noise.add(name[:12])

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def remember(self) -> dict[str, Any]:
        """Everything that is known, the looks themselves left out, as plain JSON."""
        return {
            "loaded": self._loaded,
            "known": [[node_id, known.url, known.size, known.content] for node_id, known in self._known.items()],
            "noise": {
                key: {"elements": sorted(noise.elements), "features": sorted(noise.features)}
                for key, noise in self._noise.items()
                if noise.elements or noise.features
            },
            "changes": {node_id: [anchor, dict(changed)] for node_id, (anchor, changed) in self._changes.items()},
            "at": self._at,
            "parameters": self.parameters.remember(),
            "skeleton": self.skeleton.remember() if self.skeleton is not None else None,
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over what `remember` gave."""
        self._known = {node_id: _Known(*known) for node_id, *known in memory["known"]}
        self._loaded = dict(memory["loaded"])
        self._at = {key: list(ids) for key, ids in memory["at"].items()}
        self._noise = {
            key: _Noise(set(noise["elements"]), set(noise["features"])) for key, noise in memory["noise"].items()
        }
        self._changes = {
            node_id: (anchor, Features(changed)) for node_id, (anchor, changed) in memory["changes"].items()
        }
        self.parameters.recall(memory["parameters"])
        self._contents = {}
        for node_id in self._known:
            self._note_content(node_id)
        if self.skeleton is not None:
            self.skeleton.recall(memory["skeleton"])


def _same_page(known: Snapshot, seen: Snapshot) -> bool:
    if similarity(known.structure, seen.structure) < SAME_PAGE_SIMILARITY:
        return False
    # Pages of one template share their structure.
    return known.title == seen.title or similarity(text_features(known), text_features(seen)) >= SAME_PAGE_SIMILARITY
