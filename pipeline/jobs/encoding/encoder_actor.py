"""Which process computes vectors? An actor that loads the encoder once and encodes batches of states."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import ray

from index.graph import Observation, SegmentCounts
from index.store import Store
from index.store.concurrency import concurrently
from index.vectors.multivector import EncodedPage
from pipeline.encode.protocol import Encoder, Reads, Screenshots, SiteContext
from pipeline.encode.registry import create_encoder
from pipeline.jobs.actors import end_with_ray
from waygraph.errors import EncodingFailed, WaygraphError
from waygraph.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """What others must know of an encoder."""

    name: str
    dim: int
    fingerprint: str
    needs_whole_site: bool
    reads: Reads


@dataclass(frozen=True, slots=True)
class Unencodable:
    """A state that gets no vectors, and why."""

    reason: str


#: What becomes of a state.
Encoded = EncodedPage | Unencodable


class ReadAhead:
    """Screenshots of the next batch, read while one is computed. The encoder takes each once.

    Parameters
    ----------
    blobs : where they are.

    """

    def __init__(self, blobs: Screenshots) -> None:
        self._blobs = blobs
        self._read: dict[str, bytes] = {}

    @contextmanager
    def ahead(self, digests: Collection[str]) -> Iterator[None]:
        """Read screenshots now, several at once, and hold them for the time of the block."""
        for _ in concurrently(self._fetch, digests):
            pass
        try:
            yield
        finally:
            for digest in digests:
                self._read.pop(digest, None)

    def _fetch(self, digest: str) -> None:
        try:
            self._read[digest] = self._blobs.get(digest)
        except WaygraphError as error:
            log.debug("encode/unreadable %s: %s", digest, error.message)  # the encoder asks again, and says so

    def get(self, digest: str) -> bytes:
        """See `Screenshots.get`."""
        content = self._read.pop(digest, None)
        return self._blobs.get(digest) if content is None else content


class EncoderActor:
    """Reads screenshots where they are, in the store: only references to states come here, and vectors go back.

    Its calls may overlap, so that the next batch is here and read when one is done; the encoder does one at a time.
    """

    def __init__(self, settings: Settings) -> None:
        if not ray.get_gpu_ids():
            # Ray hides GPUs from actors that reserved none, but not where a private Ray was told to keep out of it.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        # Ray limits libraries to one thread in actors that ask for less than a CPU; the encoder works in bursts.
        threads = settings.encode.threads or len(os.sched_getaffinity(0))
        self._settings = settings.encode.model_copy(update={"threads": threads})
        self._store = settings.store
        self._parts: tuple[Encoder, ReadAhead] | None = None
        self._loading, self._turn = threading.Lock(), threading.Lock()
        end_with_ray()

    def _loaded(self) -> tuple[Encoder, ReadAhead]:
        # Not in `__init__`: an error there reaches nobody but Ray.
        with self._loading:
            if self._parts is None:
                screenshots = ReadAhead(Store.open(self._store).blobs)
                self._parts = create_encoder(self._settings, screenshots), screenshots
            return self._parts

    def load(self) -> EncoderIdentity:
        """Load the encoder.

        Raises
        ------
        WeightsMissing
            When its weights are nowhere.
        StoreError
            When the store is not usable from here.

        """
        encoder, _ = self._loaded()
        return EncoderIdentity(encoder.name, encoder.dim, encoder.fingerprint, encoder.needs_whole_site, encoder.reads)

    def process(self) -> int:
        """Its process id."""
        return os.getpid()

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:
        """See `Encoder.prepare_site`."""
        encoder, _ = self._loaded()
        with self._turn:
            return encoder.prepare_site(counts)

    def encode(self, observations: Sequence[Observation], context: SiteContext) -> tuple[list[Encoded], float]:
        """Encode states, in order; also tells for how many seconds the encoder computed."""
        encoder, screenshots = self._loaded()
        digests = {seen.screenshot for seen in observations if seen.screenshot and encoder.reads == "screenshot"}
        with screenshots.ahead(digests), self._turn:
            started = time.monotonic()
            encoded = each_or_why_not(
                lambda states: [checked(page, encoder.dim) for page in encoder.encode_pages(states, context)],
                observations,
            )
            return encoded, time.monotonic() - started


def each_or_why_not(
    encode: Callable[[Sequence[Observation]], list[EncodedPage]], observations: Sequence[Observation]
) -> list[Encoded]:
    """Encode states together. When one of them cannot be encoded, find out which, and encode the others.

    Only errors that waygraph knows are some state's fault. Any other says that this process is not to be trusted.
    """
    if not observations:
        return []
    try:
        return [*encode(observations)]
    except WaygraphError as error:
        if len(observations) == 1:
            return [Unencodable(error.message)]
    middle = len(observations) // 2
    return each_or_why_not(encode, observations[:middle]) + each_or_why_not(encode, observations[middle:])


def checked(page: EncodedPage, dim: int) -> EncodedPage:
    """`page`, when a store could hold it.

    Raises
    ------
    EncodingFailed
        When its vectors have another shape, or values that float16 cannot hold.

    """
    shape = page.vectors.shape
    if len(shape) != 2 or not shape[0] or shape[1] != dim or not len(page.rows) == len(page.segments) == shape[0]:
        raise EncodingFailed(f"The encoder made vectors of shape {shape}; expected (n, {dim}).")
    if not np.abs(page.vectors).max() <= np.finfo(np.float16).max:  # not `isfinite`: this refuses NaN as well
        raise EncodingFailed("The encoder computed numbers that are not finite, or too large.")
    return page
