"""What is a vector index? The seam between multi-vectors and the engine that scores them with MaxSim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

#: Qdrant refuses a multi-vector of this many values or more.
MAX_VALUES_PER_MULTIVECTOR = 2**20


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """One search hit: `score` is MaxSim as the mean over query rows (WebNavigator, eq. 4)."""

    node_id: str
    score: float


@dataclass(frozen=True, slots=True)
class MapKey:
    """Whose vectors: a version of a site's map, and a hash of what it holds.

    Version numbers alone do not say it where maps of several stores meet, or of one that was made anew.
    """

    site: str
    version: int
    content: str

    @property
    def name(self) -> str:
        """All of it in one string."""
        return f"{self.site} {self.version} {self.content}"


class VectorIndex(Protocol):
    """Multi-vectors of the states of one site version, searchable by MaxSim (dot product)."""

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add states as (node id, matrix of shape (n, dim)); an id that is present is replaced.

        Raises
        ------
        InvalidInput
            When a matrix is empty, has another dim, is not finite, or holds 2^20 values or more.

        """
        ...

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """The k best states for a query matrix of shape (m, dim), best first, ties by node id."""
        ...

    def compact(self) -> None:
        """Called once when the index has been filled: what it keeps on a disk becomes as small as it gets."""
        ...

    def __len__(self) -> int: ...

    def close(self) -> None:
        """Release the engine and delete what only this index used. Closing twice is allowed."""
        ...
