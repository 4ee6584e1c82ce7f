"""What does a visit bring that its group had not shown before? Words, structures, and how much patience is left."""

from __future__ import annotations

import re
import zlib
from array import array
from base64 import b85decode, b85encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.browser.snapshot import Snapshot

#: A visit brings new words when at least so many were never seen in its group, and they are so large a share of its
#: words, or so many. Pages named by dates name days and months, which are few.
MIN_NEW_WORDS, MIN_NEW_WORDS_OF_DATES = 2, 3
NEW_WORD_SHARE, MANY_NEW_WORDS = 0.05, 8
#: Structures told apart per group; a group with more of them changes at random.
MAX_CLUSTERS = 6
MAX_VOCABULARY = 20_000
_SKETCH_SIZE = 64
_WORD = re.compile(r"[^\W\d_]{2,}")


def words(seen: Snapshot) -> set[int]:
    """CRC-32 of each distinct word that a page shows, in lower case, numbers left out: they count and tell the time."""
    text = " ".join(segment.text for segment in seen.segments).lower()
    return {zlib.crc32(word.encode(errors="replace")) for word in set(_WORD.findall(text))}


@dataclass(frozen=True, slots=True)
class Sketch:
    """A structure in 64 numbers: the smallest of its hashes, which are a random sample since MD5 spreads evenly.

    Two sketches give the Jaccard similarity of their structures within about 0.06 (bottom-k sketch, Broder 1997).
    """

    size: int
    lowest: array[int]

    @classmethod
    def of(cls, seen: Snapshot) -> Sketch:
        """Sketch of the sorted structure of a look."""
        return cls(len(seen.structure), array("L", (int(element[:8], 16) for element in seen.structure[:_SKETCH_SIZE])))

    def is_like(self, other: Sketch) -> bool:
        """Whether two structures are of one kind: half of all elements are shared, or one contains the other."""
        if not self.size or not other.size:
            return self.size == other.size
        mine, its = set(self.lowest), set(other.lowest)
        sample = sorted(mine | its)[:_SKETCH_SIZE]
        jaccard = sum(1 for element in sample if element in mine and element in its) / len(sample)
        common = jaccard * (self.size + other.size) / (1 + jaccard)
        return jaccard >= 0.5 or common >= 0.8 * min(self.size, other.size)


@dataclass(slots=True)
class Group:
    """Pages of one kind: what they have shown so far, and how many more may show nothing new.

    Attributes
    ----------
    credit : visits without gain that are left; a gain gives some back, never more than `budget`.
    min_new_words : how many new words make a gain.
    visits : new states; `generating` of them offered further members of the group.
    spent : visits without gain that were charged.
    clusters : structures seen, one sketch each; `kinds` says which of them pages with a certain query showed first.
    """

    budget: int
    credit: int
    min_new_words: int = MIN_NEW_WORDS
    visits: int = 0
    generating: int = 0
    spent: int = 0
    vocabulary: set[int] = field(default_factory=set)
    clusters: list[Sketch] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        """No visit without gain is left."""
        return self.credit <= 0

    @property
    def is_fertile(self) -> bool:
        """Whether most of its pages are goals rather than passages: products, not months that lead to weeks."""
        return not self.exhausted and 2 * self.generating <= max(self.visits, 2)

    def shows(self, seen: Snapshot) -> tuple[bool, int]:
        """Take note of a new state: whether it has new words or a new structure, and which structure it has."""
        self.visits += 1
        fresh = words(seen)
        new = len(fresh - self.vocabulary)
        if len(self.vocabulary) < MAX_VOCABULARY:
            self.vocabulary |= fresh
        sketch = Sketch.of(seen)
        cluster = next((i for i, known in enumerate(self.clusters) if known.is_like(sketch)), -1)
        is_new_structure = cluster < 0 and len(self.clusters) < MAX_CLUSTERS
        if is_new_structure:
            self.clusters.append(sketch)
            cluster = len(self.clusters) - 1
        says_new = new >= self.min_new_words and (new >= NEW_WORD_SHARE * len(fresh) or new >= MANY_NEW_WORDS)
        return is_new_structure or says_new, cluster

    def charge(self) -> None:
        """A visit brought nothing."""
        self.spent += 1
        self.credit -= 1

    def give_back(self) -> None:
        """A visit brought something: an exhausted group stays so, since nobody goes there any more."""
        if not self.exhausted:
            self.credit = min(self.budget, self.credit + 2)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; sets of numbers are packed."""
        return {
            "budget": self.budget,
            "credit": self.credit,
            "min_new_words": self.min_new_words,
            "visits": self.visits,
            "generating": self.generating,
            "spent": self.spent,
            "vocabulary": pack(self.vocabulary),
            "clusters": [[sketch.size, pack(sketch.lowest)] for sketch in self.clusters],
            "kinds": self.kinds,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Group:
        """Inverse of `to_json`."""
        packed = {
            "vocabulary": set(unpack(document["vocabulary"])),
            "clusters": [Sketch(size, array("L", unpack(lowest))) for size, lowest in document["clusters"]],
            "kinds": dict(document["kinds"]),
        }
        return cls(**{**document, **packed})


def pack(numbers: Iterable[int]) -> str:
    """Numbers below 2**32 as text, sorted, five characters each."""
    return b85encode(b"".join(number.to_bytes(4, "big") for number in sorted(numbers))).decode()


def unpack(text: str) -> list[int]:
    """Inverse of `pack`: the sorted numbers."""
    packed = b85decode(text)
    return [int.from_bytes(packed[i : i + 4], "big") for i in range(0, len(packed), 4)]
