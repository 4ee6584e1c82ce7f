"""Which looks count as a state besides its recorded one? Aliases that exploring saw, and evidence for all others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from index.graph.model import Evidence, Merge
from index.graph.tokens import untokened

#: A page shows a state when it has at least these shares of the state's sampled features and elements.
#: Measured by `bench/likeness.py`, see docs/explorer.md.
FEATURE_SHARE = 0.75
ELEMENT_SHARE = 0.5
#: And this share of what is its own: advertisements that stayed while the site was mapped look like it.
OWN_SHARE = 0.4

#: Pages whose frame has another shape (on telephones, or logged in) are known by what is the state's own, when that is
#: so many features at least: by this share of them, and of the structure, when at most so much of the page is strange
#: to the state. Measured by `bench/foreign_profiles.py`.
MIN_OWN = 2
FRAMELESS_OWN_SHARE, FRAMELESS_ELEMENT_SHARE, STRANGE_SHARE = 0.6, 0.25, 0.4
#: A page that shows this share of the site's frame is in the language of the map.
LEGIBLE_SHARE = 0.5

#: Merges of this reason are other pages that a state stands for, not other looks at its own.
STANDS_FOR = "equivalent"


@dataclass(frozen=True, slots=True)
class Recognition:
    """How the states of a map are recognised besides by their ids.

    Attributes
    ----------
    merges : looks that were taken for a known state, by their own id.
    stands_for : how many pages a state stands for, itself included, where these are several (skeleton mode).
    evidence : by state; states without any are recognised by ids alone.
    """

    merges: Mapping[str, Merge] = field(default_factory=dict)
    stands_for: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)

    def canonical(self, node_id: str) -> str:
        """The state that a look with this id was taken for; the id itself when it is no other's."""
        merge = self.merges.get(node_id)
        return node_id if merge is None else merge.kept

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """By state, the ids of other looks at the same page, sorted."""
        found: dict[str, list[str]] = {}
        for merged, merge in sorted(self.merges.items()):
            if merge.reason != STANDS_FOR:
                found.setdefault(merge.kept, []).append(merged)
        return {kept: tuple(merged) for kept, merged in found.items()}

    def states(self) -> set[str]:
        """Ids of all states that something is said about."""
        return {merge.kept for merge in self.merges.values()} | {*self.stands_for, *self.evidence}


#: What is known of maps that were made before other looks were recorded.
NO_RECOGNITION = Recognition()


def is_equivalent(
    evidence: Evidence | None, state_url: str, url: str, features: Mapping[str, int], structure: Collection[str]
) -> bool:
    """Whether a page shows a state although its id is another one.

    The URLs must be equal, what looks drawn at random in them aside where that names no page; everything that
    distinguishes the state from others at that URL must be there, and nothing that distinguishes those from it. Then
    either enough of the whole page must be there, and most of what is the state's own; or the latter alone, when the
    site's frame has another shape, as it has on telephones and for who is logged in.

    Parameters
    ----------
    state_url, url : normalised URLs of the state and of the page.
    features, structure : what the page shows, with counts, and the hashes of its exposed elements.
    """
    if evidence is None or not evidence.features or not _is_one_url(state_url, url, named=evidence.named):
        return False
    if any(features.get(name, 0) < count for name, count in evidence.shows.items()):
        return False
    if any(features.get(name, 0) > count for name, count in evidence.hides.items()):
        return False
    elements = share(evidence.elements, {element[:12] for element in structure})
    own = share(evidence.own, features)
    if share(evidence.features, features) >= FEATURE_SHARE and elements >= ELEMENT_SHARE:
        return own >= OWN_SHARE
    return (
        len(evidence.own) >= MIN_OWN
        and own >= FRAMELESS_OWN_SHARE
        and elements >= FRAMELESS_ELEMENT_SHARE
        and _strange(evidence, features) <= STRANGE_SHARE
    )


def _is_one_url(one: str, other: str, *, named: bool) -> bool:
    return one == other or (not named and untokened(one) == untokened(other))


def _strange(evidence: Evidence, features: Collection[str]) -> float:
    """Which part of what a page shows the state does not, as far as the sample reaches."""
    known = frozenset(evidence.features)
    reached = [name for name in features if name <= evidence.features[-1]]
    return sum(name not in known for name in reached) / len(reached) if reached else 1.0


def is_contradicted(evidence: Evidence | None, features: Mapping[str, int]) -> bool:
    """Whether a page that has a state's id shows something else in the same elements, such as "please log in".

    So it is when the page shows nothing that is the state's own, although it speaks the language of the map: the site's
    frame is there. When that is not legible either, the page may be translated; then the id is believed when no other
    URL has this structure.
    """
    if evidence is None or len(evidence.own) < MIN_OWN or share(evidence.own, features) > 0:
        return False
    own = frozenset(evidence.own)
    frame = [name for name in evidence.features if name not in own]
    is_legible = bool(frame) and share(frame, features) >= LEGIBLE_SHARE
    return is_legible or not evidence.alone


def share(sample: Collection[str], found: Iterable[str]) -> float:
    """Which part of the sample was found."""
    there = frozenset(found)
    return sum(name in there for name in sample) / len(sample) if sample else 1.0
