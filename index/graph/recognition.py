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

    The URLs must be equal, what looks drawn at random in them aside; everything that distinguishes the state from
    others at that URL must be there, and nothing that distinguishes those from it; and enough of the rest of the page.

    Parameters
    ----------
    state_url, url : normalised URLs of the state and of the page.
    features, structure : what the page shows, with counts, and the hashes of its exposed elements.
    """
    if evidence is None or not evidence.features or untokened(state_url) != untokened(url):
        return False
    if any(features.get(name, 0) < count for name, count in evidence.shows.items()):
        return False
    if any(features.get(name, 0) > count for name, count in evidence.hides.items()):
        return False
    elements = {element[:12] for element in structure}
    return share(evidence.features, features) >= FEATURE_SHARE and share(evidence.elements, elements) >= ELEMENT_SHARE


def share(sample: Collection[str], found: Iterable[str]) -> float:
    """Which part of the sample was found."""
    there = frozenset(found)
    return sum(name in there for name in sample) / len(sample) if sample else 1.0
