"""Gain of a visit: the words and structures that a page group had not shown before, and the budget that is left."""

from __future__ import annotations

import re
import zlib
from array import array
from base64 import b85decode, b85encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.thresholds import (
    BUDGET_PER_GAIN,
    MANY_NEW_WORDS,
    MAX_CLUSTERS,
    MAX_VOCABULARY,
    MIN_NEW_WORDS,
    NEW_WORD_SHARE,
    SKETCH_CONTAINED_SHARE,
    SKETCH_SIMILARITY,
    SKETCH_SIZE,
)

_WORD = re.compile(r"[^\W\d_]{2,}")


def word_hashes(snapshot: Snapshot) -> set[int]:
    """Return the CRC-32 of each distinct word of a page, in lower case.

    Numbers are left out: counters and clocks show new ones with every visit.
    """
    text = " ".join(segment.text for segment in snapshot.segments).lower()
    return {zlib.crc32(word.encode(errors="replace")) for word in set(_WORD.findall(text))}


@dataclass(frozen=True, slots=True)
class StructureSketch:
    """Bottom-k sketch of a structure (Broder 1997): its smallest hashes, a random sample since MD5 spreads evenly.

    Two sketches estimate the Jaccard similarity of their structures within about 0.06.

    Attributes
    ----------
    size
        Number of elements of the structure.
    lowest
        The smallest element hashes, first 32 bits of each, at most `SKETCH_SIZE`.
    """

    size: int
    lowest: array[int]

    @classmethod
    def of(cls, snapshot: Snapshot) -> StructureSketch:
        """Return the sketch of a snapshot's structure, which is sorted."""
        hashes = (int(element[:8], 16) for element in snapshot.structure[:SKETCH_SIZE])
        return cls(len(snapshot.structure), array("L", hashes))

    def is_like(self, other: StructureSketch) -> bool:
        """Return whether two structures are of one kind: they share half of all elements, or one contains the other."""
        if not self.size or not other.size:
            return self.size == other.size
        mine, theirs = set(self.lowest), set(other.lowest)
        sample = sorted(mine | theirs)[:SKETCH_SIZE]
        jaccard = sum(1 for element in sample if element in mine and element in theirs) / len(sample)
        common = jaccard * (self.size + other.size) / (1 + jaccard)
        return jaccard >= SKETCH_SIMILARITY or common >= SKETCH_CONTAINED_SHARE * min(self.size, other.size)


@dataclass(slots=True)
class PageGroup:
    """Pages of one kind: what they have shown so far, and how many more visits may show nothing new.

    Attributes
    ----------
    budget
        Visits without gain that are granted.
    remaining_budget
        Visits without gain that are left. A gain gives `BUDGET_PER_GAIN` of them back.
    min_new_words
        Number of new words that make a gain.
    visits
        New states of this group.
    visits_offering_more
        Those of them that offered further pages of the group.
    visits_without_gain
        Those of them that cost budget.
    untried_choices
        Visits after the budget was spent, see `MAX_UNTRIED_CHOICES`.
    vocabulary
        Hashes of the words shown so far, at most about `MAX_VOCABULARY`.
    clusters
        One sketch for each structure shown so far, at most `MAX_CLUSTERS`.
    cluster_by_query
        For each kind of query, the index in `clusters` of the structure that a page with it showed first.
    """

    budget: int
    remaining_budget: int
    min_new_words: int = MIN_NEW_WORDS
    visits: int = 0
    visits_offering_more: int = 0
    visits_without_gain: int = 0
    untried_choices: int = 0
    vocabulary: set[int] = field(default_factory=set)
    clusters: list[StructureSketch] = field(default_factory=list)
    cluster_by_query: dict[str, int] = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        """Whether no visit without gain is left."""
        return self.remaining_budget <= 0

    @property
    def has_mostly_content_pages(self) -> bool:
        """Whether most pages are destinations (products) rather than passages (months that lead to weeks)."""
        return not self.exhausted and 2 * self.visits_offering_more <= max(self.visits, 2)

    def add_visit(self, snapshot: Snapshot) -> tuple[bool, int]:
        """Add the words and the structure of a new state.

        Parameters
        ----------
        snapshot
            Snapshot of the state.

        Returns
        -------
        tuple[bool, int]
            Whether it has new words or a new structure, and the index of its structure in `clusters` (-1 if it is not
            stored).
        """
        self.visits += 1
        words = word_hashes(snapshot)
        new_words = len(words - self.vocabulary)
        if len(self.vocabulary) < MAX_VOCABULARY:
            self.vocabulary |= words
        sketch = StructureSketch.of(snapshot)
        cluster = next((i for i, known in enumerate(self.clusters) if known.is_like(sketch)), -1)
        has_new_structure = cluster < 0 and len(self.clusters) < MAX_CLUSTERS
        if has_new_structure:
            self.clusters.append(sketch)
            cluster = len(self.clusters) - 1
        has_new_words = new_words >= self.min_new_words and (
            new_words >= NEW_WORD_SHARE * len(words) or new_words >= MANY_NEW_WORDS
        )
        return has_new_structure or has_new_words, cluster

    def spend_budget(self) -> None:
        """Take a visit without gain off the budget."""
        self.visits_without_gain += 1
        self.remaining_budget -= 1

    def restore_budget(self) -> None:
        """Give budget back for a gain. An exhausted group stays exhausted: its links are no longer followed."""
        if not self.exhausted:
            self.remaining_budget = min(self.budget, self.remaining_budget + BUDGET_PER_GAIN)

    def to_json(self) -> dict[str, Any]:
        """Return the group as plain JSON; sets of numbers are packed."""
        return {
            "budget": self.budget,
            "credit": self.remaining_budget,
            "min_new_words": self.min_new_words,
            "visits": self.visits,
            "generating": self.visits_offering_more,
            "spent": self.visits_without_gain,
            "choices": self.untried_choices,
            "vocabulary": pack_numbers(self.vocabulary),
            "clusters": [[sketch.size, pack_numbers(sketch.lowest)] for sketch in self.clusters],
            "kinds": self.cluster_by_query,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PageGroup:
        """Return the group that `to_json` wrote."""
        return cls(
            budget=document["budget"],
            remaining_budget=document["credit"],
            min_new_words=document["min_new_words"],
            visits=document["visits"],
            visits_offering_more=document["generating"],
            visits_without_gain=document["spent"],
            untried_choices=document.get("choices", 0),  # checkpoints of earlier versions have none
            vocabulary=set(unpack_numbers(document["vocabulary"])),
            clusters=[
                StructureSketch(size, array("L", unpack_numbers(lowest))) for size, lowest in document["clusters"]
            ],
            cluster_by_query=dict(document["kinds"]),
        )


def pack_numbers(numbers: Iterable[int]) -> str:
    """Return numbers below 2**32 as text, sorted, five characters (base 85) each."""
    return b85encode(b"".join(number.to_bytes(4, "big") for number in sorted(numbers))).decode()


def unpack_numbers(text: str) -> list[int]:
    """Return the sorted numbers that `pack_numbers` wrote."""
    packed = b85decode(text)
    return [int.from_bytes(packed[i : i + 4], "big") for i in range(0, len(packed), 4)]
