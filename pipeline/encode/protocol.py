"""What is an encoder? The seam between page states and multi-vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from index.graph import Observation, SegmentCounts
from index.vectors.multivector import EncodedPage, MultiVector

#: What an encoder must know of a whole site before it encodes the site's pages; JSON, pinned in the version's manifest.
SiteContext = dict[str, Any]


class Encoder(Protocol):
    """Turns states and queries into multi-vectors that MaxSim compares."""

    @property
    def name(self) -> str:
        """Short name, as used on the command line."""
        ...

    @property
    def dim(self) -> int:
        """Number of columns of every multi-vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes with anything that changes vectors; an index refuses queries of another fingerprint."""
        ...

    @property
    def needs_whole_site(self) -> bool:
        """Whether pages can only be encoded once all states of the site are known (`prepare_site` is meaningful)."""
        ...

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:
        """Derive the page-side context of a site. Queries never depend on it."""
        ...

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:
        """Encode states, in order. Equal content gives equal vectors."""
        ...

    def encode_query(self, text: str) -> MultiVector:
        """Encode a question: float32 of shape (m, dim), m >= 1."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode questions that were asked at the same time; cheaper than one by one, equal up to rounding."""
        ...
