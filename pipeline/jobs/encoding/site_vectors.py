"""Vectors of a site: reuse existing ones, encode the rest through the pool and the spool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from waygraph.core.errors import EncodingFailed, StoreError
from waygraph.index.graph import Observation, SegmentCounts
from waygraph.index.store import EncoderInfo, Manifest, MapVersion, Store
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import SiteContext, content_key
from waygraph.pipeline.encode.text.anchor_text import anchored_observations
from waygraph.pipeline.encode.text.boilerplate_reuse import has_same_vectors, reuse_boilerplate
from waygraph.pipeline.encode.text.descriptions import with_descriptions
from waygraph.pipeline.encode.text.lead_text import rounded_page, unvisited_pages
from waygraph.pipeline.encode.text.tool_text import tool_observations
from waygraph.pipeline.encode.text_counts import count_segments
from waygraph.pipeline.jobs.actors.protocol import ObjectRef
from waygraph.pipeline.jobs.encoding.batches import StateBatch, plan_batches
from waygraph.pipeline.jobs.encoding.encoder_actor import EncodeResult, EncoderIdentity, Unencodable
from waygraph.pipeline.jobs.encoding.encoder_pool import EncodeJob, EncoderPool
from waygraph.pipeline.jobs.encoding.vector_spool import VectorSpool

log = logging.getLogger(__name__)

#: Attempts to read the spool, which other runs of the site remove when they publish.
_MAX_SPOOL_READS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedMap:
    """The vectors of a map.

    Attributes
    ----------
    encoder
        What made the vectors.
    pages
        Vectors by node id, without states that could not be encoded.
    lead_pages
        Vectors by lead id; not all leads get some.
    tool_pages
        Vectors by tool id; not all tools get some.
    """

    encoder: EncoderInfo
    pages: Mapping[str, EncodedPage]
    lead_pages: Mapping[str, EncodedPage] = field(default_factory=dict)
    tool_pages: Mapping[str, EncodedPage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteVectors(EncodedMap):
    """The vectors of a site, and how they came about.

    Attributes
    ----------
    failures
        Reasons by node id of states that could not be encoded.
    encoded
        See `waygraph.pipeline.jobs.report.outcomes.Publication`.
    reused
        See `waygraph.pipeline.jobs.report.outcomes.Publication`.
    streamed
        See `waygraph.pipeline.jobs.report.outcomes.Publication`.
    """

    failures: Mapping[str, str]
    encoded: int
    reused: int
    streamed: int


@dataclass(frozen=True, slots=True)
class _SiteStream:
    """Encoding of a site during its exploration: its spool, and the content keys that need no encoding any more."""

    spool: VectorSpool
    keys: set[str]


@dataclass(frozen=True, slots=True)
class _SpooledVectors:
    """Vectors that were read from the spool, by content key.

    Attributes
    ----------
    pages
        Vectors in the spool.
    failures
        Why contents could not be encoded.
    streamed
        Number of contents that were in the spool or pending at the start.
    """

    pages: Mapping[str, EncodedPage]
    failures: Mapping[str, str]
    streamed: int


class SiteVectorizer:
    """Vectors of sites, computed with a pool of encoders.

    Parameters
    ----------
    store
        Location of the store.
    pool
        The encoders.
    batch_states
        Maximal number of states of a batch.
    share
        Returns a reference of a value that is passed to encoders many times, see `ActorSystem.put`.
    """

    def __init__(
        self, store: str, pool: EncoderPool, *, batch_states: int, share: Callable[[object], ObjectRef]
    ) -> None:
        self._store = store
        self._pool = pool
        self._batch_states = batch_states
        self._share = share
        self._pending: dict[tuple[str, str], asyncio.Future[Unencodable | None]] = {}
        """Pending results by folder of the spool and content key."""
        self._streams: dict[str, _SiteStream] = {}
        self._shared_context: SiteContext | None = None
        """Context of all sites, for an encoder that does not need the whole site."""

    async def encode_site(
        self,
        site: str,
        observations: Mapping[str, Observation],
        on_progress: Callable[[int, int], None],
        *,
        leads: Iterable[Observation] = (),
        tools: Iterable[Observation] = (),
        previous: MapVersion | None = None,
        keep_boilerplate: bool = False,
    ) -> SiteVectors:
        """Return the vectors of every state, lead and tool of a site.

        Parameters
        ----------
        site
            Key of the site.
        observations
            States by node id.
        on_progress
            Called with the number of encoded states, leads and tools, and of those to encode.
        leads
            What is known of pages that were not visited. They do not affect the boilerplate of the site.
        tools
            What tools say of themselves. They do not affect it either.
        previous
            The published version, if it is read already. Its vectors are reused if the same encoder made them.
        keep_boilerplate
            Keep the boilerplate of `previous`, see `waygraph.pipeline.encode.text.boilerplate_reuse`.

        Returns
        -------
        SiteVectors
            Vectors and failures.

        Raises
        ------
        EncodingFailed
            If no state at all could be encoded.
        StoreError
            If vectors can be neither written nor read.
        WaygraphError
            If there are no encoders.
        """
        identity = await self._pool.load()
        context = await self._context(identity, list(observations.values()))
        if keep_boilerplate and previous is not None and is_encoded_by(previous.manifest, identity):
            context = reuse_boilerplate(previous.manifest.encoder.context, context)
        encoder = _encoder_info(identity, context)
        of_leads, of_tools = ({each.node_id: each for each in some} for some in (leads, tools))
        contents = {**observations, **of_leads, **of_tools}
        keys = {node_id: content_key(each, identity.reads) for node_id, each in contents.items()}
        pages = await asyncio.to_thread(lambda: _reusable_pages(previous or self._previous(site), encoder, identity))
        missing = {key: contents[node_id] for node_id, key in keys.items() if key not in pages}
        spooled = await self._encode_missing(site, missing, encoder, on_progress)
        pages |= {key: spooled.pages[key] for key in missing if key in spooled.pages}
        pages_by_node = {node_id: pages[keys[node_id]] for node_id in observations if keys[node_id] in pages}
        if observations and not pages_by_node:
            reason = spooled.failures[keys[next(iter(observations))]]
            raise EncodingFailed(f"No state of {site} could be encoded. {reason}")
        for kind, others in (("leads", of_leads), ("tools", of_tools)):
            if failed := [name for name in others if keys[name] in spooled.failures]:
                reason = spooled.failures[keys[failed[0]]]
                log.warning("%d %s of %s have no vectors: %s", len(failed), kind, site, reason)

        def rounded(others: Iterable[str]) -> dict[str, EncodedPage]:
            return {name: rounded_page(pages[keys[name]]) for name in others if keys[name] in pages}

        encoded = len({keys[node_id] for node_id in pages_by_node} & missing.keys())
        return SiteVectors(
            encoder=encoder,
            pages=pages_by_node,
            lead_pages=rounded(of_leads),
            tool_pages=rounded(of_tools),
            failures={
                node_id: spooled.failures[key]
                for node_id, key in keys.items()
                if key in spooled.failures and node_id in observations
            },
            encoded=encoded,
            reused=len(pages_by_node) - encoded,
            streamed=spooled.streamed,
        )

    async def remove_spool(self, site: str, encoder: EncoderInfo) -> None:
        """Remove the spool of a site whose vectors are in the store.

        Parameters
        ----------
        site
            Key of the site.
        encoder
            The encoder and its context for the site.
        """
        self._streams.pop(site, None)
        spool = VectorSpool(self._store, site, encoder)
        # Results that are still pending would create the spool again.
        late = [future for (folder, _), future in self._pending.items() if folder == str(spool.folder)]
        await asyncio.gather(*late, return_exceptions=True)
        await asyncio.to_thread(spool.remove)

    async def offer(self, site: str, observation: Observation) -> bool:
        """Encode a state while its site is still explored. Waits while the queue is full.

        Parameters
        ----------
        site
            Key of the site.
        observation
            The state.

        Returns
        -------
        bool
            Whether more states are accepted. They are not if the encoder needs the whole site first.
        """
        identity = await self._pool.load()
        if identity.needs_whole_site:
            return False
        context = await self._context(identity, [])
        if (stream := self._streams.get(site)) is None:
            encoder = _encoder_info(identity, context)
            spool = VectorSpool(self._store, site, encoder)
            known = await asyncio.to_thread(
                lambda: spool.known() | _reusable_pages(self._previous(site), encoder, identity).keys()
            )
            stream = self._streams.setdefault(site, _SiteStream(spool, known))
        key = content_key(observation, identity.reads)
        if key not in stream.keys:
            stream.keys.add(key)
            await self._pool.add(StateBatch((self._job(key, observation, stream.spool),), context, joinable=True))
        return True

    def _previous(self, site: str) -> MapVersion | None:
        store = Store.open(self._store)
        return None if store.current(site) is None else store.read(site)

    async def _context(self, identity: EncoderIdentity, observations: Sequence[Observation]) -> SiteContext:
        if identity.needs_whole_site:
            return await self._pool.prepare_site(await asyncio.to_thread(count_segments, observations))
        if self._shared_context is None:
            self._shared_context = await self._pool.prepare_site(SegmentCounts(0, {}, {}))
        return self._shared_context

    async def _encode_missing(
        self,
        site: str,
        missing: Mapping[str, Observation],
        encoder: EncoderInfo,
        on_progress: Callable[[int, int], None],
    ) -> _SpooledVectors:
        """Encode the contents that are not in the spool, and read all of them from it."""
        spool = VectorSpool(self._store, site, encoder)
        # Before the spool is read: a batch that ends during the read would be in neither of the two, and encoded again.
        pending = self._pending_of(missing, spool)
        pages = await asyncio.to_thread(spool.read)
        streamed = len(pending.keys() | (missing.keys() & pages.keys()))
        failures: dict[str, str] = {}
        for _ in range(_MAX_SPOOL_READS):
            if not (left := missing.keys() - pages.keys() - failures.keys()):
                break
            failures |= await self._encode(missing, left, pending, spool, encoder.context, on_progress=on_progress)
            pending = self._pending_of(missing, spool)
            pages = await asyncio.to_thread(spool.read)
        if left := missing.keys() - pages.keys() - failures.keys():
            raise StoreError(
                f"Vectors of {len(left)} states of {site} disappeared from {spool.folder}.",
                hint="Does another run publish this site? Wait for its end, and run the command again.",
            )
        return _SpooledVectors(pages, failures, streamed)

    def _pending_of(self, keys: Iterable[str], spool: VectorSpool) -> dict[str, asyncio.Future[Unencodable | None]]:
        """Return the results, not there yet, of those contents that are being encoded."""
        folder = str(spool.folder)
        return {key: future for key in keys if (future := self._pending.get((folder, key))) is not None}

    async def _encode(
        self,
        missing: Mapping[str, Observation],
        left: Collection[str],
        pending: Mapping[str, asyncio.Future[Unencodable | None]],
        spool: VectorSpool,
        context: SiteContext,
        *,
        on_progress: Callable[[int, int], None],
    ) -> dict[str, str]:
        """Encode the contents `left` of `missing`, but wait for those `pending`. Return reasons of failures by key."""
        futures = {key: pending[key] for key in missing if key in left and key in pending}
        shared = self._share(context)  # once, not with every batch
        done = len(missing) - len(left)

        def count(_: object) -> None:
            nonlocal done
            done += 1
            on_progress(done, len(missing))

        on_progress(done, len(missing))
        for future in futures.values():
            future.add_done_callback(count)
        # Plan all states, including finished ones, so that a resumed run forms the same batches.
        for keys in plan_batches(list(missing), self._batch_states):
            jobs = [self._job(key, missing[key], spool) for key in keys if key in left and key not in futures]
            for job in jobs:
                job.done.add_done_callback(count)
                futures[job.key] = job.done
            if jobs:
                await self._pool.add(StateBatch(tuple(jobs), shared))
        results = await asyncio.gather(*futures.values())
        return {key: result.reason for key, result in zip(futures, results, strict=True) if result is not None}

    def _job(self, key: str, observation: Observation, spool: VectorSpool) -> EncodeJob:
        job = EncodeJob(key, observation, spool)
        pending_key = str(spool.folder), key
        self._pending[pending_key] = job.done
        job.done.add_done_callback(lambda _: self._pending.pop(pending_key, None))
        return job


async def spool_vectors(jobs: Sequence[EncodeJob], results: Sequence[EncodeResult]) -> None:
    """Spool the vectors of one batch, by site.

    Parameters
    ----------
    jobs
        The states of the batch.
    results
        Their results, in the same order.
    """
    by_spool: dict[VectorSpool, dict[str, EncodedPage]] = {}
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, EncodedPage):
            by_spool.setdefault(job.spool, {})[job.key] = result
    for spool, pages in by_spool.items():
        await asyncio.to_thread(spool.add, pages)


def is_encoded_by(manifest: Manifest, identity: EncoderIdentity) -> bool:
    """Return whether an encoder made the vectors of a version."""
    return manifest.encoder.fingerprint == identity.fingerprint


def _encoder_info(identity: EncoderIdentity, context: SiteContext) -> EncoderInfo:
    return EncoderInfo(identity.name, identity.dim, identity.fingerprint, context)


def _reusable_pages(
    version: MapVersion | None, encoder: EncoderInfo, identity: EncoderIdentity
) -> dict[str, EncodedPage]:
    """Return reusable vectors of a version by content key: of all that this encoder reads in the same context."""
    if version is None or replace(version.manifest.encoder, context=encoder.context) != encoder:
        return {}
    before = version.manifest.encoder.context
    unvisited = unvisited_pages(version.leads.values(), version.observations.values())
    states, leads = (with_descriptions(each, version.descriptions) for each in (version.observations, unvisited))
    contents = (
        *anchored_observations(version.graph, states.values()).values(),
        *leads.values(),
        *tool_observations(version.tools.values(), version.graph),
    )
    pages = {**version.pages, **version.lead_pages, **version.tool_pages}
    return {
        content_key(each, identity.reads): pages[each.node_id]
        for each in contents
        if each.node_id in pages and has_same_vectors(before, encoder.context, each)
    }
