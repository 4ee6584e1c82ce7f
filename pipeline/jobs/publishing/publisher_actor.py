"""The publisher actor: feeds the encoders and writes versions to the store.

On Ray, captures and vectors pass between this actor, the encoders and Ray's object store. The driver never holds them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import TypeVar

from waygraph.core.errors import ContentStopped, EncoderMismatch, PublishConflict
from waygraph.core.settings import Settings
from waygraph.core.text import replace_surrogates
from waygraph.index.graph import InteractionGraph, Observation, Tool
from waygraph.index.store import Manifest, MapDraft, MapVersion, Store
from waygraph.pipeline.comparison import compare_versions
from waygraph.pipeline.encode.text.anchor_text import anchored_observations
from waygraph.pipeline.encode.text.descriptions import kept_descriptions, with_descriptions
from waygraph.pipeline.encode.text.lead_text import unvisited_pages
from waygraph.pipeline.encode.text.tool_text import tool_observations
from waygraph.pipeline.explore.records.capture import SENDS_STOPPED, SiteCapture
from waygraph.pipeline.jobs.actors.protocol import Actor, ActorSystem
from waygraph.pipeline.jobs.call_errors import to_waygraph_error
from waygraph.pipeline.jobs.encoding.encoder_actor import EncoderIdentity
from waygraph.pipeline.jobs.encoding.encoder_pool import EncoderPool, PoolLimits
from waygraph.pipeline.jobs.encoding.pool_size import BATCHES_IN_FLIGHT, EncoderResources
from waygraph.pipeline.jobs.encoding.site_vectors import (
    EncodedMap,
    SiteVectorizer,
    SiteVectors,
    is_encoded_by,
    spool_vectors,
)
from waygraph.pipeline.jobs.metrics import EncodingMetrics
from waygraph.pipeline.jobs.publishing.changes import refresh_summary, refreshed_draft, with_lineage
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture, draft_from_version
from waygraph.pipeline.jobs.report.outcomes import TURN_ENDED, EncodingReport, Publication, StateWithoutVectors
from waygraph.pipeline.jobs.sites.site_settings import settings_for_site

_Result = TypeVar("_Result")

_ENCODER = "waygraph.pipeline.jobs.encoding.encoder_actor:EncoderActor"
#: Maximal number of concurrent calls, most of them explorers that wait for room in the encoder queue.
MAX_PUBLISHER_CALLS = 1_000
#: Number of attempts to publish a successor when another process publishes meanwhile.
_MAX_PUBLISH_ATTEMPTS = 3
#: A poll for progress is answered after this time even without progress.
_PROGRESS_PATIENCE_SECONDS = 10.0
#: Number of states without vectors in a report. The manifest holds all.
_SHOWN_FAILURES = 20


class PublisherActor:
    """Actor that owns the encoders of a run and publishes its sites.

    Calls overlap: one site is written while the next is encoded.

    Parameters
    ----------
    settings
        Settings of the run.
    run_id
        Recorded in the versions.
    resources
        Resources of the encoders.
    actors
        Where the encoders run.
    """

    def __init__(self, settings: Settings, run_id: str, resources: EncoderResources, actors: ActorSystem) -> None:
        self._settings = settings
        self._run_id = run_id
        self._resources = resources
        self._actors = actors
        jobs = settings.jobs
        self._pool = EncoderPool(
            self._start_encoder,
            spool_vectors,
            PoolLimits(resources.least, resources.most, jobs.states_per_batch, jobs.waiting_states),
            metrics=EncodingMetrics() if actors.exports_metrics else None,
        )
        self._vectors = SiteVectorizer(settings.store, self._pool, batch_states=jobs.states_per_batch, share=actors.put)
        self._progress: dict[str, tuple[int, int]] = {}
        self._progress_changed = asyncio.Event()
        self._early: deque[tuple[str, Observation]] = deque()

    def _start_encoder(self) -> Actor:
        return self._actors.start(
            _ENCODER,
            self._settings,
            self._resources.gpus > 0,
            cpus=self._resources.cpus,
            gpus=self._resources.gpus,
            concurrency=BATCHES_IN_FLIGHT + 1,
        )

    async def load(self) -> EncoderIdentity:
        """Wait until an encoder is loaded.

        Returns
        -------
        EncoderIdentity
            Properties of the encoder.

        Raises
        ------
        WaygraphError
            If no encoder can be loaded.
        """
        identity = await self._pool.load()
        while self._early:
            await self._vectors.offer(*self._early.popleft())
        return identity

    async def offer(self, site: str, observation: Observation) -> bool:
        """Call `SiteVectorizer.offer`. While the first encoder loads, as many states as may wait are held back."""
        if self._pool.identity is None and len(self._early) < self._settings.jobs.waiting_states:
            self._early.append((site, observation))
            return True
        return await self._vectors.offer(site, observation)

    async def publish(self, capture: SiteCapture) -> Publication | None:
        """Encode and publish one site. A repeated call in the same run returns the version of the first call.

        The new version continues the lineage of the current one. A refresh replaces exactly the version that it was
        made from. What a site brought in its turns replaces no larger map of another run, and is replaced by what
        its later turns bring.

        Parameters
        ----------
        capture
            The explored site.

        Returns
        -------
        Publication or None
            What was published. None: nothing yet, since the site has a larger map than that of its turns.

        Raises
        ------
        EncoderMismatch
            If a refresh would change the encoder of the map.
        PublishConflict
            If the refreshed version is not the current one any more.
        ContentStopped
            If the guard kept the map from its content, and the current version has more states.
        """
        store = await asyncio.to_thread(Store.open, self._settings.store)
        if capture.refreshes is not None:
            return await self._publish(store, capture, capture.refreshes)

        async def publish() -> Publication | None:
            current = await asyncio.to_thread(store.current, capture.site)
            if current is not None and await asyncio.to_thread(self._keeps, store, current, capture):
                if capture.report.stopped_by == SENDS_STOPPED:
                    raise ContentStopped(
                        f"The map of {capture.site} has {len(capture.graph)} state(s), since the guard stopped what "
                        f"its pages sent while loading. Version {current}, which has more, stays.",
                        hint="\n".join(capture.report.advice),
                    )
                return None
            return await self._publish(store, capture, current)

        return await _unless_published_meanwhile(publish)

    def _keeps(self, store: Store, current: int, capture: SiteCapture) -> bool:
        """Return whether the current version of another run stays.

        It does while the site of a turn is not explored further, and if the guard kept the new map from its content.
        """
        if capture.report.stopped_by not in {TURN_ENDED, SENDS_STOPPED}:
            return False
        manifest = store.manifest(capture.site, current)
        return manifest.report.get("run_id") != self._run_id and manifest.counts.states > len(capture.graph)

    async def _publish(self, store: Store, capture: SiteCapture, replaced: int | None) -> Publication:
        started = time.monotonic()
        site, is_refresh = capture.site, capture.refreshes is not None
        previous = None if replaced is None else await asyncio.to_thread(store.read, site, replaced)
        if is_refresh and previous is not None:
            await self._check_encoder(previous)
        unvisited = await asyncio.to_thread(unvisited_pages, capture.leads.values(), capture.observations.values())
        known = {**capture.observations, **unvisited}
        descriptions = kept_descriptions(previous.descriptions if previous else {}, known)
        vectors = await self._encoded(
            site,
            capture.graph,
            with_descriptions(capture.observations, descriptions),
            leads=with_descriptions(unvisited, descriptions).values(),
            tools=capture.tools.values(),
            previous=previous,
            keep_boilerplate=is_refresh,
        )
        encoded = time.monotonic()
        settings = settings_for_site(self._settings, site)
        draft = draft_from_capture(
            capture,
            settings,
            vectors,
            run_id=self._run_id,
            descriptions=descriptions,
        )
        if previous is not None:
            diff = await asyncio.to_thread(compare_versions, store, previous, capture)
            draft = (
                refreshed_draft(draft, previous, capture, diff) if is_refresh else with_lineage(draft, previous, diff)
            )
        version = await asyncio.to_thread(_publish_once, store, _with_failures(draft, vectors), self._run_id, replaced)
        await self._vectors.remove_spool(site, vectors.encoder)
        publication = _publication(version, vectors, draft, encoded - started, time.monotonic() - encoded)
        return publication.model_copy(update={"refresh": refresh_summary(draft.report)})

    async def _check_encoder(self, previous: MapVersion) -> None:
        manifest, identity = previous.manifest, await self.load()
        if previous.pages and not is_encoded_by(manifest, identity):
            raise EncoderMismatch(
                f"Version {manifest.version} of {manifest.site} was encoded by another {manifest.encoder.name} than "
                f"the {identity.name} of this run: its weights, settings or code differ.",
                hint=f"Re-encode the map first: waygraph reencode {manifest.site}",
            )

    async def reencode(self, site: str) -> Publication | None:
        """Publish the current version of a site with this run's encoder. Return None if it has its vectors already."""
        store = await asyncio.to_thread(Store.open, self._settings.store)
        return await _unless_published_meanwhile(lambda: self._reencode(store, site))

    async def _reencode(self, store: Store, site: str) -> Publication | None:
        started = time.monotonic()
        version = await asyncio.to_thread(store.read, site)
        identity = await self.load()
        unvisited = await asyncio.to_thread(unvisited_pages, version.leads.values(), version.observations.values())
        tools = {each.node_id for each in tool_observations(version.tools.values(), version.graph)}
        is_complete = _encoded_ids(version) == (version.observations.keys(), unvisited.keys(), tools)
        if is_encoded_by(version.manifest, identity) and is_complete:
            return None
        vectors = await self._encoded(
            site,
            version.graph,
            with_descriptions(version.observations, version.descriptions),
            leads=with_descriptions(unvisited, version.descriptions).values(),
            tools=version.tools.values(),
            previous=version,
        )
        if is_encoded_by(version.manifest, identity) and _encoded_ids(vectors) == _encoded_ids(version):
            return None  # what could not be encoded still fails
        encoded = time.monotonic()
        draft = draft_from_version(version, self._settings, vectors, run_id=self._run_id)
        replaces = version.manifest.version
        number = await asyncio.to_thread(store.publish, _with_failures(draft, vectors), replaces=replaces)
        await self._vectors.remove_spool(site, vectors.encoder)
        return _publication(number, vectors, draft, encoded - started, time.monotonic() - encoded)

    async def _encoded(
        self,
        site: str,
        graph: InteractionGraph,
        observations: Mapping[str, Observation],
        *,
        leads: Iterable[Observation],
        tools: Iterable[Tool],
        previous: MapVersion | None,
        keep_boilerplate: bool = False,
    ) -> SiteVectors:
        await self.load()
        named = await asyncio.to_thread(anchored_observations, graph, observations.values())
        try:
            return await self._vectors.encode_site(
                site,
                named,
                partial(self._report_progress, site),
                leads=leads,
                tools=tool_observations(tools, graph),
                previous=previous,
                keep_boilerplate=keep_boilerplate,
            )
        except Exception as error:
            raise to_waygraph_error(error, f"Encoding {site}") from error
        finally:
            self._progress.pop(site, None)

    def _report_progress(self, site: str, done: int, states: int) -> None:
        self._progress[site] = done, states
        self._progress_changed.set()

    async def progress(self) -> dict[str, tuple[int, int]]:
        """Return the number of encoded states and of states to encode, by site. Long-polls for a single caller."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._progress_changed.wait(), _PROGRESS_PATIENCE_SECONDS)
        self._progress_changed.clear()
        return dict(self._progress)

    async def report(self) -> EncodingReport:
        """Return what the encoders did so far."""
        return self._pool.report()


def _encoded_ids(of: MapVersion | EncodedMap) -> tuple[AbstractSet[str], ...]:
    """Return the ids of the states, leads and tools that have vectors."""
    return of.pages.keys(), of.lead_pages.keys(), of.tool_pages.keys()


async def _unless_published_meanwhile(publish: Callable[[], Awaitable[_Result]]) -> _Result:
    """Publish a successor of the current version. Retry if another version was published meanwhile."""
    for attempt in range(1, _MAX_PUBLISH_ATTEMPTS + 1):
        try:
            return await publish()
        except PublishConflict:
            if attempt == _MAX_PUBLISH_ATTEMPTS:
                raise
    raise AssertionError("a conflict is raised or tried again")


def _with_failures(draft: MapDraft, vectors: SiteVectors) -> MapDraft:
    report = {name: value for name, value in draft.report.items() if name != "without_vectors"}
    if vectors.failures:
        report["without_vectors"] = dict(vectors.failures)
    return replace(draft, report=report)


def _publication(
    version: int, vectors: SiteVectors, draft: MapDraft, encode_seconds: float, publish_seconds: float
) -> Publication:
    return Publication(
        site=draft.site,
        version=version,
        encoded=vectors.encoded,
        reused=vectors.reused,
        encode_seconds=round(encode_seconds, 3),
        publish_seconds=round(publish_seconds, 3),
        states=len(draft.graph),
        streamed=vectors.streamed,
        without_vectors=len(vectors.failures),
        failures=tuple(
            StateWithoutVectors(
                node_id=node_id,
                url=replace_surrogates(draft.graph.nodes[node_id].url),
                reason=replace_surrogates(reason),
            )
            for node_id, reason in list(vectors.failures.items())[:_SHOWN_FAILURES]
        ),
    )


def _publish_once(store: Store, draft: MapDraft, run_id: str, replaces: int | None) -> int:
    current = store.current(draft.site)
    if current is not None:
        manifest = store.manifest(draft.site, current)
        if manifest.report.get("run_id") == run_id and not _continues(draft, manifest):
            return current
    # Also for a site without a version: another publisher of this run may live on a machine that was cut off.
    return store.publish(draft, replaces=replaces or 0)


def _continues(draft: MapDraft, manifest: Manifest) -> bool:
    """Return whether a draft is more of a map whose last turn ended."""
    is_of_turn = manifest.partial and manifest.report.get("stopped_by") == TURN_ENDED
    return is_of_turn and (not draft.partial or len(draft.graph) > manifest.counts.states)
