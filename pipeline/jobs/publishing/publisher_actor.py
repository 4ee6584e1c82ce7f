"""How does an explored site become a published map? An actor that feeds encoders and writes to the store.

Captures and vectors stay between this actor, the encoders and Ray's object store; the driver never sees them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from index.graph import InteractionGraph, Observation
from index.store import MapDraft, MapVersion, Store
from pipeline.encode.called import by_node
from pipeline.explore.capture import SiteCapture
from pipeline.jobs.actors import Actor, end_with_ray, start_actor
from pipeline.jobs.encoding.encoder_actor import EncoderActor, EncoderIdentity
from pipeline.jobs.encoding.encoder_pool import EncoderPool
from pipeline.jobs.encoding.pool_size import IN_FLIGHT, EncoderRoom
from pipeline.jobs.encoding.site_vectors import SiteVectors, Vectors, is_current, keep_vectors
from pipeline.jobs.failures import typed
from pipeline.jobs.metrics import EncodingMetrics
from pipeline.jobs.publishing.changes import changes, refresh_account, refreshed, succeeding
from pipeline.jobs.publishing.draft import draft_of, reencoded_draft
from pipeline.jobs.report.outcomes import EncodingReport, Publication, StateWithoutVectors
from pipeline.jobs.sites.site_settings import settings_of
from waygraph.errors import EncoderMismatch, PublishConflict
from waygraph.settings import Settings
from waygraph.spelling import spellable

_Result = TypeVar("_Result")

#: Calls that may be in this actor at once: hardly more than explorers that wait for room in the line of encoders.
PUBLISHER_CALLS = 1_000
#: So often publishing what succeeds a version is begun again because somebody else published it meanwhile.
_CONFLICTS = 3
#: A question for progress is answered after this long even when there is none.
_PROGRESS_PATIENCE_SECONDS = 10.0
#: States without vectors that a report names; the manifest names all.
_SHOWN_FAILURES = 20


class PublisherActor:
    """Owns the encoders of a run. Its calls overlap: one site is written while the next one is encoded."""

    def __init__(self, settings: Settings, run_id: str, room: EncoderRoom) -> None:
        self._settings = settings
        self._run_id = run_id
        self._room = room
        jobs = settings.jobs
        self._pool = EncoderPool(
            self._start_encoder,
            keep_vectors,
            least=room.least,
            most=room.most,
            size=jobs.states_per_batch,
            room=jobs.waiting_states,
            metrics=EncodingMetrics(),
        )
        self._vectors = Vectors(settings.store, self._pool, size=jobs.states_per_batch)
        self._progress: dict[str, tuple[int, int]] = {}
        self._moved = asyncio.Event()
        self._early: deque[tuple[str, Observation]] = deque()
        end_with_ray()

    def _start_encoder(self) -> Actor:
        return start_actor(
            EncoderActor, self._settings, cpus=self._room.cpus, gpus=self._room.gpus, concurrency=IN_FLIGHT + 1
        )

    async def load(self) -> EncoderIdentity:
        """Wait until an encoder is loaded.

        Raises
        ------
        WaygraphError
            When none can be.

        """
        identity = await self._pool.load()
        while self._early:
            await self._vectors.offer(*self._early.popleft())
        return identity

    async def offer(self, site: str, observation: Observation) -> bool:
        """See `Vectors.offer`. While the first encoder loads, as many states as may wait are kept for it."""
        if self._pool.identity is None and len(self._early) < self._settings.jobs.waiting_states:
            self._early.append((site, observation))
            return True
        return await self._vectors.offer(site, observation)

    async def publish(self, capture: SiteCapture) -> Publication:
        """Encode and publish one site; a repeated call of the same run finds the version that the first one made.

        It succeeds the version that is there: what became of older states goes on to be known. A refresh succeeds the
        version that it recalled, or nothing is published.

        Raises
        ------
        EncoderMismatch
            When a refresh would change whose vectors the map has.
        PublishConflict
            When the version that is refreshed is not the current one any more.
        """
        store = await asyncio.to_thread(Store.open, self._settings.store)
        if capture.refreshes is not None:
            return await self._publish(store, capture, capture.refreshes)

        async def publish() -> Publication:
            current = await asyncio.to_thread(store.current, capture.site)
            return await self._publish(store, capture, current)

        return await _unless_published_meanwhile(publish)

    async def _publish(self, store: Store, capture: SiteCapture, replaced: int | None) -> Publication:
        started = time.monotonic()
        site, is_refresh = capture.site, capture.refreshes is not None
        previous = None if replaced is None else await asyncio.to_thread(store.read, site, replaced)
        if is_refresh and previous is not None:
            await self._check_encoder(previous)
        vectors = await self._encoded(site, capture.graph, capture.observations, previous, pin=is_refresh)
        encoded = time.monotonic()
        settings = settings_of(self._settings, site)
        draft = draft_of(capture, settings, pages=vectors.pages, encoder=vectors.encoder, run_id=self._run_id)
        if previous is not None:
            diff = await asyncio.to_thread(changes, store, previous, capture)
            draft = refreshed(draft, previous, capture, diff) if is_refresh else succeeding(draft, previous, diff)
        version = await asyncio.to_thread(_publish_once, store, _with_failures(draft, vectors), self._run_id, replaced)
        await self._vectors.published(site, vectors.encoder)
        made = _publication(version, vectors, draft, encoded - started, time.monotonic() - encoded)
        return made.model_copy(update={"refresh": refresh_account(draft.report)})

    async def _check_encoder(self, previous: MapVersion) -> None:
        manifest, identity = previous.manifest, await self.load()
        if previous.pages and not is_current(manifest, identity):
            raise EncoderMismatch(
                f"Version {manifest.version} of {manifest.site} was encoded by another {manifest.encoder.name} than "
                f"the {identity.name} of this run: its weights, settings or code differ.",
                hint=f"Give the map this one's vectors first: waygraph reencode {manifest.site}",
            )

    async def reencode(self, site: str) -> Publication | None:
        """Publish the current version of a site with vectors of this run's encoder; nothing when it has them."""
        store = await asyncio.to_thread(Store.open, self._settings.store)
        return await _unless_published_meanwhile(lambda: self._reencode(store, site))

    async def _reencode(self, store: Store, site: str) -> Publication | None:
        started = time.monotonic()
        version = await asyncio.to_thread(store.read, site)
        identity = await self.load()
        if is_current(version.manifest, identity) and version.pages.keys() == version.observations.keys():
            return None
        vectors = await self._encoded(site, version.graph, version.observations, version)
        if is_current(version.manifest, identity) and vectors.pages.keys() == version.pages.keys():
            return None  # what could not be encoded still cannot be
        encoded = time.monotonic()
        draft = reencoded_draft(
            version, self._settings, pages=vectors.pages, encoder=vectors.encoder, run_id=self._run_id
        )
        replaces = version.manifest.version
        number = await asyncio.to_thread(store.publish, _with_failures(draft, vectors), replaces=replaces)
        await self._vectors.published(site, vectors.encoder)
        return _publication(number, vectors, draft, encoded - started, time.monotonic() - encoded)

    async def _encoded(
        self,
        site: str,
        graph: InteractionGraph,
        observations: Mapping[str, Observation],
        previous: MapVersion | None = None,
        *,
        pin: bool = False,
    ) -> SiteVectors:
        await self.load()
        named = await asyncio.to_thread(by_node, graph, observations.values())
        try:
            return await self._vectors.of_site(site, named, partial(self._tell, site), previous=previous, pin=pin)
        except Exception as error:
            raise typed(error, f"Encoding {site}") from error
        finally:
            self._progress.pop(site, None)

    def _tell(self, site: str, done: int, states: int) -> None:
        self._progress[site] = done, states
        self._moved.set()

    async def progress(self) -> dict[str, tuple[int, int]]:
        """By site that is being encoded: states that are done, and all that have to be. Answers when that changed.

        For one listener.
        """
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._moved.wait(), _PROGRESS_PATIENCE_SECONDS)
        self._moved.clear()
        return dict(self._progress)

    async def report(self) -> EncodingReport:
        """What the encoders did so far."""
        return self._pool.report()


async def _unless_published_meanwhile(publish: Callable[[], Awaitable[_Result]]) -> _Result:
    """Publish what is made from the current version; begin again when that is another one by then."""
    for conflicts in range(_CONFLICTS):
        try:
            return await publish()
        except PublishConflict:
            if conflicts + 1 == _CONFLICTS:
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
                node_id=node_id, url=spellable(draft.graph.nodes[node_id].url), reason=spellable(reason)
            )
            for node_id, reason in list(vectors.failures.items())[:_SHOWN_FAILURES]
        ),
    )


def _publish_once(store: Store, draft: MapDraft, run_id: str, replaces: int | None) -> int:
    current = store.current(draft.site)
    if current is not None and store.manifest(draft.site, current).report.get("run_id") == run_id:
        return current
    # Of a site that had no version, too: on a machine that was cut off there may be another publisher of this run.
    return store.publish(draft, replaces=replaces or 0)
