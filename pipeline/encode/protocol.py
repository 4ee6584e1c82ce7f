"""The encoder protocol, between states and multi-vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from waygraph.index.graph import Observation, SegmentCounts
from waygraph.index.vectors.multivector import EncodedPage, MultiVector

#: What an encoder needs to know about a whole site before it encodes single states. JSON, stored in the manifest.
SiteContext = dict[str, Any]

#: The part of a state that an encoder reads. States that are equal in it have equal vectors.
Reads = Literal["text", "screenshot"]


def content_key(observation: Observation, reads: Reads) -> str:
    """Return the key of the content that the vectors of a state depend on.

    Of states with equal keys only one needs to be encoded. Encoders that read screenshots encode a state without a
    screenshot by its text.
    """
    return (observation.screenshot if reads == "screenshot" else "") or observation.content_hash


class Screenshots(Protocol):
    """Screenshots by content hash. `waygraph.index.store.BlobStore` implements it."""

    def get(self, digest: str) -> bytes:
        """Return the bytes of a screenshot.

        Parameters
        ----------
        digest
            SHA-256 (hex) of the content.

        Returns
        -------
        bytes
            The image file.

        Raises
        ------
        NotFound
            If there is no such blob.
        StoreError
            If the blob is damaged.
        """
        ...


class Encoder(Protocol):
    """Turn states and queries into multi-vectors that MaxSim compares."""

    @property
    def name(self) -> str:
        """Name, as used on the command line."""
        ...

    @property
    def dim(self) -> int:
        """Number of columns of every multi-vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of everything that decides vectors of pages. An index refuses queries of another fingerprint."""
        ...

    @property
    def needs_whole_site(self) -> bool:
        """Whether states can only be encoded once all states of the site are known (see `prepare_site`)."""
        ...

    @property
    def overlaps_calls(self) -> bool:
        """Whether threads may call `encode_pages` at once, and the second call prepares while the first computes."""
        ...

    @property
    def reads(self) -> Reads:
        """The part of a state that the encoder reads, see `content_key`."""
        ...

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:
        """Return the context that states of a site are encoded with. Queries never depend on it."""
        ...

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:
        """Encode states, in order. Equal content results in equal vectors."""
        ...

    def encode_query(self, text: str) -> MultiVector:
        """Encode a query as float32 of shape (m, dim), m >= 1."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode several queries, which costs less than one by one. The vectors are equal up to rounding."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode short texts, such as names of links, to compare them with each other: float32 of shape (m, dim)."""
        ...
