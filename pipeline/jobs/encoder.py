"""Which process computes vectors? An actor that loads the encoder once and encodes batches of states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from index.graph import Observation, SegmentCounts
from index.vectors.multivector import EncodedPage
from pipeline.encode.protocol import Encoder, SiteContext
from pipeline.encode.registry import create_encoder
from waygraph.settings import EncodeSettings


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """What others must know of an encoder."""

    name: str
    dim: int
    fingerprint: str
    needs_whole_site: bool


class EncoderActor:
    """Every method is a pure function of its arguments: Ray may repeat a call in a new process when one dies."""

    def __init__(self, settings: EncodeSettings) -> None:
        # Ray limits libraries to one thread in actors that ask for less than a CPU; the encoder works in bursts.
        self._settings = settings.model_copy(update={"threads": settings.threads or len(os.sched_getaffinity(0))})

    @cached_property
    def _encoder(self) -> Encoder:
        # Not in `__init__`: an error there reaches nobody but Ray.
        return create_encoder(self._settings)

    def load(self) -> EncoderIdentity:
        """Load the encoder.

        Raises
        ------
        WeightsMissing
            When its weights are nowhere.

        """
        encoder = self._encoder
        return EncoderIdentity(encoder.name, encoder.dim, encoder.fingerprint, encoder.needs_whole_site)

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:
        """See `Encoder.prepare_site`."""
        return self._encoder.prepare_site(counts)

    def encode(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:
        """See `Encoder.encode_pages`."""
        return self._encoder.encode_pages(observations, context)
