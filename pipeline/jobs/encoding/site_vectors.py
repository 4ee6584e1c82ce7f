"""How do the states of a site get their vectors? Known ones are taken, the others go through encoders and the spool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import ray

from index.graph import Observation, SegmentCounts
from index.store import EncoderInfo, Manifest, MapVersion, Store
from index.vectors.multivector import EncodedPage
from pipeline.encode.called import by_node
from pipeline.encode.counts import count_segments
from pipeline.encode.drift import pinned, reads_alike
from pipeline.encode.protocol import SiteContext, content_key
from pipeline.jobs.encoding.batches import Batch, planned
from pipeline.jobs.encoding.encoder_actor import Encoded, EncoderIdentity, Unencodable
from pipeline.jobs.encoding.encoder_pool import EncoderPool, Job
from pipeline.jobs.encoding.vector_spool import Spool
from waygraph.errors import EncodingFailed, StoreError

log = logging.getLogger(__name__)

#: So often the spool may vanish under a run before it gives up: other runs of the site remove it when they publish.
_READS = 3


@dataclass(frozen=True, slots=True)
class SiteVectors:
    """The vectors of a site.

    Attributes
    ----------
    pages : by node id; states that could not be encoded are not there.
    failures : why not, by node id.
    encoded, reused, streamed : see `pipeline.jobs.report.outcomes.Publication`.

    """

    encoder: EncoderInfo
    pages: Mapping[str, EncodedPage]
    failures: Mapping[str, str]
    encoded: int
    reused: int
    streamed: int


@dataclass(frozen=True, slots=True)
class _Stream:
    """Of a site that is being explored: where its vectors go, and which contents have some, or will."""

    spool: Spool
    known: set[str]


class Vectors:
    """Sends what has no vectors yet to a pool of encoders.

    Parameters
    ----------
    store : location of the store.
    size : states in a batch.

    """

    def __init__(self, store: str, pool: EncoderPool, *, size: int) -> None:
        self._store = store
        self._pool = pool
        self._size = size
        self._under_way: dict[tuple[str, str], asyncio.Future[Unencodable | None]] = {}
        """By spool and content key."""
        self._streams: dict[str, _Stream] = {}
        self._context_of_all: SiteContext | None = None

    async def of_site(
        self,
        site: str,
        observations: Mapping[str, Observation],
        on_progress: Callable[[int, int], None],
        *,
        previous: MapVersion | None = None,
        pin: bool = False,
    ) -> SiteVectors:
        """Vectors of every state.

        Parameters
        ----------
        observations : by node id.
        on_progress : told how many of the states that have to be encoded are done, and how many there are.
        previous : the published version, if it was read already. Its vectors are taken over if this encoder made them.
        pin : keep what `previous` says that the site repeats everywhere, see `pipeline.encode.drift`.

        Raises
        ------
        EncodingFailed
            When no state at all could be encoded.
        StoreError
            When vectors can be neither kept nor read.
        WaygraphError
            When there are no encoders.

        """
        identity = await self._pool.load()
        context = await self._context(identity, list(observations.values()))
        if pin and previous is not None and is_current(previous.manifest, identity):
            context = pinned(previous.manifest.encoder.context, context)
        encoder = EncoderInfo(identity.name, identity.dim, identity.fingerprint, context)
        spool = Spool(self._store, site, identity.fingerprint, context, identity.dim)
        keys = {node_id: content_key(seen, identity.reads) for node_id, seen in observations.items()}
        known = await asyncio.to_thread(lambda: _pages_of(previous or self._previous(site), encoder, identity))
        wanted = {key: observations[node_id] for node_id, key in keys.items() if key not in known}
        spooled = await asyncio.to_thread(spool.read)
        before = sum(key in spooled or (str(spool.folder), key) in self._under_way for key in wanted)
        failed: dict[str, str] = {}
        for _ in range(_READS):
            if not (missing := wanted.keys() - spooled.keys() - failed.keys()):
                break
            failed |= await self._encode(wanted, missing, spool, context, on_progress)
            spooled = await asyncio.to_thread(spool.read)
        if missing := wanted.keys() - spooled.keys() - failed.keys():
            raise StoreError(
                f"Vectors of {len(missing)} states of {site} are not in {spool.folder} any more.",
                hint="Does another run publish this site? Wait for its end, and run the command again.",
            )
        known |= {key: spooled[key] for key in wanted if key in spooled}
        if failed and not known:
            raise EncodingFailed(f"No state of {site} could be encoded. {next(iter(failed.values()))}")
        pages = {node_id: known[key] for node_id, key in keys.items() if key in known}
        computed = len(wanted) - len(failed)
        return SiteVectors(
            encoder=encoder,
            pages=pages,
            failures={node_id: failed[key] for node_id, key in keys.items() if key in failed},
            encoded=computed,
            reused=len(pages) - computed,
            streamed=before,
        )

    async def published(self, site: str, encoder: EncoderInfo) -> None:
        """A site's vectors are in the store: remove them from the spool."""
        self._streams.pop(site, None)
        spool = Spool(self._store, site, encoder.fingerprint, encoder.context, encoder.dim)
        # What was handed over and then not needed would come back after it.
        late = [future for (folder, _), future in self._under_way.items() if folder == str(spool.folder)]
        await asyncio.gather(*late, return_exceptions=True)
        await asyncio.to_thread(spool.remove)

    async def offer(self, site: str, observation: Observation) -> bool:
        """Have a state encoded while its site is still explored; waits while the line is full.

        Returns whether more such states are wanted: not when the encoder must know the whole site first.
        """
        identity = await self._pool.load()
        if identity.needs_whole_site:
            return False
        context = await self._context(identity, [])
        if (stream := self._streams.get(site)) is None:
            encoder = EncoderInfo(identity.name, identity.dim, identity.fingerprint, context)
            spool = Spool(self._store, site, identity.fingerprint, context, identity.dim)
            known = await asyncio.to_thread(
                lambda: spool.known() | _pages_of(self._previous(site), encoder, identity).keys()
            )
            stream = self._streams.setdefault(site, _Stream(spool, known))
        key = content_key(observation, identity.reads)
        if key not in stream.known:
            stream.known.add(key)
            await self._pool.add(Batch((self._job(key, observation, stream.spool),), context, joinable=True))
        return True

    def _previous(self, site: str) -> MapVersion | None:
        store = Store.open(self._store)
        return None if store.current(site) is None else store.read(site)

    async def _context(self, identity: EncoderIdentity, observations: Sequence[Observation]) -> SiteContext:
        if identity.needs_whole_site:
            return await self._pool.prepare_site(await asyncio.to_thread(count_segments, observations))
        if self._context_of_all is None:
            self._context_of_all = await self._pool.prepare_site(SegmentCounts(0, {}, {}))
        return self._context_of_all

    async def _encode(
        self,
        wanted: Mapping[str, Observation],
        missing: Iterable[str],
        spool: Spool,
        context: SiteContext,
        on_progress: Callable[[int, int], None],
    ) -> dict[str, str]:
        """Have states encoded; returns why some could not be, by key."""
        left = set(missing)
        waits = {k: f for k in wanted if k in left and (f := self._under_way.get((str(spool.folder), k))) is not None}
        shared = ray.put(context)  # once, not with every batch
        done = len(wanted) - len(left)

        def count(_: object) -> None:
            nonlocal done
            done += 1
            on_progress(done, len(wanted))

        on_progress(done, len(wanted))
        for future in waits.values():
            future.add_done_callback(count)
        # All that is wanted is planned, whatever is done of it: so a killed run goes on with the same batches.
        for keys in planned(list(wanted), self._size):
            jobs = [self._job(key, wanted[key], spool) for key in keys if key in left and key not in waits]
            for job in jobs:
                job.done.add_done_callback(count)
                waits[job.key] = job.done
            if jobs:
                await self._pool.add(Batch(tuple(jobs), shared))
        results = await asyncio.gather(*waits.values())
        return {key: result.reason for key, result in zip(waits, results, strict=True) if result is not None}

    def _job(self, key: str, observation: Observation, spool: Spool) -> Job:
        job = Job(key, observation, spool)
        place = str(spool.folder), key
        self._under_way[place] = job.done
        job.done.add_done_callback(lambda _: self._under_way.pop(place, None))
        return job


async def keep_vectors(jobs: Sequence[Job], encoded: Sequence[Encoded]) -> None:
    """Spool what was encoded in one batch, each site's by itself."""
    by_spool: dict[Spool, dict[str, EncodedPage]] = {}
    for job, page in zip(jobs, encoded, strict=True):
        if isinstance(page, EncodedPage):
            by_spool.setdefault(job.spool, {})[job.key] = page
    for spool, pages in by_spool.items():
        await asyncio.to_thread(spool.add, pages)


def is_current(manifest: Manifest, identity: EncoderIdentity) -> bool:
    """Whether an encoder made the vectors of a version."""
    return manifest.encoder.fingerprint == identity.fingerprint


def _pages_of(version: MapVersion | None, encoder: EncoderInfo, identity: EncoderIdentity) -> dict[str, EncodedPage]:
    """Vectors of the published version by content key, of states that the same encoder read in the same way."""
    if version is None or replace(version.manifest.encoder, context=encoder.context) != encoder:
        return {}
    before = version.manifest.encoder.context
    return {
        content_key(seen, identity.reads): version.pages[node_id]
        for node_id, seen in by_node(version.graph, version.observations.values()).items()
        if node_id in version.pages and reads_alike(before, encoder.context, seen)
    }
