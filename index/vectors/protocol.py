"""Protocol of vector indexes, between multi-vectors and the engines that score them by MaxSim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

#: Qdrant rejects a multi-vector of this many values or more.
MAX_VALUES_PER_MULTIVECTOR = 2**20


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A state and its score: MaxSim as the mean over query rows (WebNavigator, eq. 4)."""

    node_id: str
    score: float


@dataclass(frozen=True, slots=True)
class MapKey:
    """Key of the vectors of one version of a site's map.

    The content hash is needed where maps of several stores meet, or where a map was removed and indexed again: there
    the version number alone is ambiguous.

    Attributes
    ----------
    site
        Key of the site.
    version
        Number of the version.
    content
        Hash of the vectors and of their encoder.
    """

    site: str
    version: int
    content: str

    @property
    def name(self) -> str:
        """The key as one string."""
        return f"{self.site} {self.version} {self.content}"


class VectorIndex(Protocol):
    """Multi-vectors of the states of one site version, searchable by MaxSim over dot products."""

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add states; a state whose id is present is replaced.

        Parameters
        ----------
        items
            Pairs of node id and matrix of shape (n, dim).

        Raises
        ------
        InvalidInput
            If a matrix is empty, has another dim, is not finite, or has 2^20 values or more.
        """
        ...

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """Return the top k states for a query of shape (m, dim), best first, ties by node id."""
        ...

    def compact(self) -> None:
        """Reduce the index to its smallest size on disk. Called once, after it has been filled."""
        ...

    def __len__(self) -> int: ...

    def close(self) -> None:
        """Release the engine and delete what only this index used. Closing twice is allowed."""
        ...
