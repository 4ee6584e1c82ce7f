"""How does an explored site become a published map? An actor that feeds encoders and writes to the store.

Captures and vectors stay between this actor, the encoders and Ray's object store; the driver never sees them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import ray

from index.graph import Observation
from index.store import EncoderInfo, MapDraft, Store
from index.vectors.multivector import EncodedPage
from pipeline.encode.counts import count_segments
from pipeline.encode.protocol import SiteContext
from pipeline.explore.capture import SiteCapture
from pipeline.jobs.actors import Actor, Ref, start_actor
from pipeline.jobs.draft import draft_of
from pipeline.jobs.encoder import EncoderActor, EncoderIdentity
from pipeline.jobs.failures import typed
from pipeline.jobs.report import Publication
from waygraph.settings import Settings

#: Batches that may wait for or be in one encoder.
_BATCHES_IN_FLIGHT = 2
#: An encoder that died (memory, most often) is started again so often.
_RESTARTS = 2


class PublisherActor:
    """Owns the encoders of a run. Its calls overlap: one site is written while the next one is encoded."""

    def __init__(self, settings: Settings, run_id: str, encoder_cpus: float) -> None:
        self._settings = settings
        self._run_id = run_id
        self._encoders = [
            start_actor(EncoderActor, settings.encode, cpus=encoder_cpus, concurrency=1, restarts=_RESTARTS)
            for _ in range(settings.jobs.encoders)
        ]
        # Taking a slot before sending a batch is the back-pressure: whoever finds none waits.
        self._slots: asyncio.Queue[Actor] = asyncio.Queue()
        for _ in range(_BATCHES_IN_FLIGHT):
            for encoder in self._encoders:
                self._slots.put_nowait(encoder)

    async def load(self) -> EncoderIdentity:
        """Wait until every encoder is loaded.

        Raises
        ------
        WaygraphError
            When one cannot be.

        """
        try:
            identities: list[EncoderIdentity] = await asyncio.gather(*(e.load.remote() for e in self._encoders))
        except Exception as error:
            raise typed(error, "Loading the encoder") from error
        return identities[0]

    async def publish(self, capture: SiteCapture) -> Publication:
        """Encode and publish one site; a repeated call of the same run finds the version that the first one made."""
        identity = await self.load()
        started = time.monotonic()
        store = await asyncio.to_thread(Store.open, self._settings.store)
        try:
            context = await self._prepare(capture, identity)
            known = await asyncio.to_thread(_previous_pages, store, capture.site, identity, context)
            fresh = _distinct(capture.observations.values(), known)
            await self._encode(fresh, context, into=known)
        except Exception as error:
            raise typed(error, f"Encoding {capture.site}") from error
        pages = {node: known[o.content_hash] for node, o in capture.observations.items()}
        encoded = time.monotonic()
        draft = draft_of(
            capture,
            self._settings,
            pages=pages,
            encoder=EncoderInfo(identity.name, identity.dim, identity.fingerprint, context),
            run_id=self._run_id,
        )
        version = await asyncio.to_thread(_publish_once, store, draft, self._run_id)
        return Publication(
            version=version,
            encoded=len(fresh),
            reused=len(pages) - len(fresh),
            encode_seconds=round(encoded - started, 3),
            publish_seconds=round(time.monotonic() - encoded, 3),
        )

    async def _prepare(self, capture: SiteCapture, identity: EncoderIdentity) -> SiteContext:
        if not identity.needs_whole_site:
            return {}
        counts = await asyncio.to_thread(count_segments, list(capture.observations.values()))
        context: SiteContext = await self._encoders[0].prepare_site.remote(counts)
        return context

    async def _encode(
        self, observations: Sequence[Observation], context: SiteContext, *, into: dict[str, EncodedPage]
    ) -> None:
        """Encode in batches on all encoders at once, and add the results by content hash."""
        if not observations:
            return
        shared = ray.put(context)  # once, not with every batch
        async with asyncio.TaskGroup() as group:
            for batch in _batches(observations, self._settings.jobs.states_per_batch):
                encoder = await self._slots.get()
                group.create_task(self._encode_batch(encoder, batch, shared, into))

    async def _encode_batch(
        self, encoder: Actor, batch: Sequence[Observation], context: Ref, into: dict[str, EncodedPage]
    ) -> None:
        try:
            pages: list[EncodedPage] = await encoder.encode.remote(batch, context)
        finally:
            self._slots.put_nowait(encoder)
        into.update(zip((o.content_hash for o in batch), pages, strict=True))


def _distinct(observations: Iterable[Observation], known: Mapping[str, EncodedPage]) -> list[Observation]:
    """One observation of each content that has no vectors yet, in order."""
    return list({o.content_hash: o for o in observations if o.content_hash not in known}.values())


def _batches(observations: Sequence[Observation], size: int) -> Iterator[Sequence[Observation]]:
    for start in range(0, len(observations), size):
        yield observations[start : start + size]


def _previous_pages(store: Store, site: str, identity: EncoderIdentity, context: SiteContext) -> dict[str, EncodedPage]:
    """Vectors of the published version by content hash, when the same encoder made them in the same context."""
    if site not in store.sites():
        return {}
    encoder = store.manifest(site).encoder
    if (encoder.name, encoder.fingerprint, encoder.context) != (identity.name, identity.fingerprint, context):
        return {}
    previous = store.read(site)
    return {o.content_hash: previous.pages[n] for n, o in previous.observations.items() if n in previous.pages}


def _publish_once(store: Store, draft: MapDraft, run_id: str) -> int:
    if draft.site in store.sites() and store.manifest(draft.site).report.get("run_id") == run_id:
        return store.head(draft.site)
    return store.publish(draft)
