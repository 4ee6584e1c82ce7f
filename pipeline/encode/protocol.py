"""What is an encoder? The seam between page states and multi-vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from index.graph import Observation, SegmentCounts
from index.vectors.multivector import EncodedPage, MultiVector

#: What an encoder must know of a whole site before it encodes the site's pages; JSON, pinned in the version's manifest.
SiteContext = dict[str, Any]

#: What of a state an encoder looks at: states that are equal in it have equal vectors.
Reads = Literal["text", "screenshot"]


def content_key(observation: Observation, reads: Reads) -> str:
    """What the vectors of a state depend on: of two states with equal keys only one need be encoded.

    A state without a screenshot is encoded by its text by those, too, who read screenshots.
    """
    return (observation.screenshot if reads == "screenshot" else "") or observation.content_hash


class Screenshots(Protocol):
    """Where screenshots are, by content hash; `index.store.BlobStore` is one."""

    def get(self, digest: str) -> bytes:
        """The bytes (NotFound when there are none, StoreError when they are damaged)."""
        ...


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

    @property
    def reads(self) -> Reads:
        """What of a state it looks at, see `content_key`."""
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
