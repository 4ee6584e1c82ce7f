"""The encoder actor: loads the encoder once and encodes batches of states."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from waygraph.core.errors import EncodingFailed, WaygraphError
from waygraph.core.settings import Settings
from waygraph.index.graph import Observation, SegmentCounts
from waygraph.index.store import Store
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Encoder, Reads, Screenshots, SiteContext
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.actors.local_actors import this_machine

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Properties of an encoder that other processes need."""

    name: str
    dim: int
    fingerprint: str
    needs_whole_site: bool
    reads: Reads


@dataclass(frozen=True, slots=True)
class Unencodable:
    """A state that gets no vectors, with the reason."""

    reason: str


#: Result of one state.
EncodeResult = EncodedPage | Unencodable


class ScreenshotPrefetch:
    """Screenshots of the next batch, read while another batch is computed. The encoder takes each once.

    Parameters
    ----------
    blobs
        Screenshots by content hash.
    """

    def __init__(self, blobs: Screenshots) -> None:
        self._blobs = blobs
        self._read: dict[str, bytes] = {}

    @contextmanager
    def fetched(self, digests: Collection[str]) -> Iterator[None]:
        """Read screenshots concurrently and hold them inside the block."""
        for _ in concurrent_map(self._fetch, digests):
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
            # The encoder reads it again and reports the error.
            log.debug("encode/unreadable %s: %s", digest, error.message)

    def get(self, digest: str) -> bytes:
        """See `Screenshots.get`."""
        content = self._read.pop(digest, None)
        return self._blobs.get(digest) if content is None else content


class BusyTime:
    """Time in which at least one call runs, divided among the calls. Thread-safe."""

    def __init__(self) -> None:
        self._running = 0
        self._since = 0.0
        self._lock = threading.Lock()

    def start(self, now: float) -> None:
        """Note that a call begins.

        Parameters
        ----------
        now
            Time in seconds, of any clock.
        """
        with self._lock:
            if not self._running:
                self._since = now
            self._running += 1

    def stop(self, now: float) -> float:
        """Note that a call ends.

        Parameters
        ----------
        now
            Time in seconds, of the same clock.

        Returns
        -------
        float
            The busy time in seconds that no call before it has returned. All of them add up to the busy time.

        Examples
        --------
        >>> busy = BusyTime()
        >>> busy.start(0)
        >>> busy.start(1)
        >>> busy.stop(4), busy.stop(6)
        (4, 2)
        """
        with self._lock:
            spent, self._since = now - self._since, now
            self._running -= 1
        return spent


class EncoderActor:
    """Actor that encodes batches of states. It reads screenshots from the store; calls carry texts and hashes.

    Calls may overlap: the screenshots of the next batch are read while the encoder computes one, and are also prepared
    if the encoder allows it (`Encoder.overlaps_calls`).

    Parameters
    ----------
    settings
        Encoder and store.
    uses_gpu
        Whether it sees the GPUs that it reserved. False: it sees none.
    """

    def __init__(self, settings: Settings, uses_gpu: bool = False) -> None:
        if not uses_gpu:
            # Ray hides GPUs from actors that reserved none, but a private Ray is configured not to.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        # Libraries are limited to one thread in actors that reserve less than a CPU; the encoder works in bursts.
        threads = settings.encode.threads or int(this_machine().cpus)
        self._settings = settings.encode.model_copy(update={"threads": threads})
        self._store = settings.store
        self._parts: tuple[Encoder, ScreenshotPrefetch] | None = None
        self._loading, self._turn = threading.Lock(), threading.Lock()
        self._busy = BusyTime()

    def _loaded(self) -> tuple[Encoder, ScreenshotPrefetch]:
        # Not in `__init__`, whose errors only Ray sees.
        with self._loading:
            if self._parts is None:
                screenshots = ScreenshotPrefetch(Store.open(self._store).blobs)
                self._parts = create_encoder(self._settings, screenshots), screenshots
            return self._parts

    def load(self) -> EncoderIdentity:
        """Load the encoder.

        Returns
        -------
        EncoderIdentity
            Its properties.

        Raises
        ------
        WeightsMissing
            If no source has its weights.
        StoreError
            If the store cannot be used from here.
        """
        encoder, _ = self._loaded()
        return EncoderIdentity(encoder.name, encoder.dim, encoder.fingerprint, encoder.needs_whole_site, encoder.reads)

    def process(self) -> int:
        """Return the process id."""
        return os.getpid()

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:
        """Call `Encoder.prepare_site`."""
        encoder, _ = self._loaded()
        with self._turn:
            return encoder.prepare_site(counts)

    def encode(self, observations: Sequence[Observation], context: SiteContext) -> tuple[list[EncodeResult], float]:
        """Encode states, in order.

        Parameters
        ----------
        observations
            States to encode.
        context
            The result of `prepare_site`.

        Returns
        -------
        tuple[list[EncodeResult], float]
            One result per state, and the computing time in seconds that no other call has returned.
        """
        encoder, screenshots = self._loaded()
        digests = {each.screenshot for each in observations if each.screenshot and encoder.reads == "screenshot"}
        with screenshots.fetched(digests), nullcontext() if encoder.overlaps_calls else self._turn:
            self._busy.start(time.monotonic())
            try:
                encoded = encode_each(
                    lambda states: [check_page(page, encoder.dim) for page in encoder.encode_pages(states, context)],
                    observations,
                )
            finally:
                spent = self._busy.stop(time.monotonic())
            return encoded, spent


def encode_each(
    encode: Callable[[Sequence[Observation]], list[EncodedPage]], observations: Sequence[Observation]
) -> list[EncodeResult]:
    """Encode states together. If one of them cannot be encoded, find it by bisection and encode the others.

    Only a `WaygraphError` is attributed to a state. Other errors propagate, since the process may be broken.
    """
    if not observations:
        return []
    try:
        return [*encode(observations)]
    except WaygraphError as error:
        if len(observations) == 1:
            return [Unencodable(error.message)]
    middle = len(observations) // 2
    return encode_each(encode, observations[:middle]) + encode_each(encode, observations[middle:])


def check_page(page: EncodedPage, dim: int) -> EncodedPage:
    """Return `page` if a store can hold it.

    Parameters
    ----------
    page
        Result of an encoder.
    dim
        Expected number of columns.

    Returns
    -------
    EncodedPage
        The same object.

    Raises
    ------
    EncodingFailed
        If its vectors have another shape, or values that float16 cannot represent.
    """
    shape = page.vectors.shape
    if len(shape) != 2 or not shape[0] or shape[1] != dim or not len(page.rows) == len(page.segments) == shape[0]:
        raise EncodingFailed(f"The encoder made vectors of shape {shape}; expected (n, {dim}).")
    if not np.abs(page.vectors).max() <= np.finfo(np.float16).max:  # not `isfinite`: this refuses NaN as well
        raise EncodingFailed("The encoder computed numbers that are not finite, or too large.")
    return page
