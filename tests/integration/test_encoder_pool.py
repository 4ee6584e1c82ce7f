"""The encoder pool: encoders are killed, started and stopped without losing a state."""

import asyncio
import os
import signal
import time
from contextlib import ExitStack

import numpy as np
import pytest

from tests.actors import ON_BOTH
from tests.patch_encoder import KILLS, NOT_A_NUMBER, RAISES
from tests.screenshot_map import colours, observations_of
from tests.sites.server import FixtureServer
from waygraph.core.errors import WaygraphError, WeightsMissing
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.index.store import EncoderInfo, Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs import run_index
from waygraph.pipeline.jobs.actors.local_actors import local_actors
from waygraph.pipeline.jobs.actors.ray_actors import RayActors
from waygraph.pipeline.jobs.encoding import encoder_pool as pools
from waygraph.pipeline.jobs.encoding import pool_size
from waygraph.pipeline.jobs.encoding.batches import StateBatch, plan_batches
from waygraph.pipeline.jobs.encoding.encoder_actor import Unencodable
from waygraph.pipeline.jobs.encoding.encoder_pool import EncodeJob, EncoderPool, PoolLimits
from waygraph.pipeline.jobs.encoding.site_vectors import SiteVectorizer, spool_vectors
from waygraph.pipeline.jobs.encoding.vector_spool import VectorSpool, spool_folder
from waygraph.pipeline.jobs.failures import EncoderLost, max_losses_in_row

pytestmark = pytest.mark.extended

ENCODER = "waygraph.pipeline.jobs.encoding.encoder_actor:EncoderActor"
SITE = "pictures.example"
EXPLORE = "tests.integration.link_explorer:explore_links"
#: Less than what explores waits for a page; nothing waits for it to pass.
PATIENCE_S = 25.0


class Encoding:
    """States of given colours, and a pool that encodes them."""

    def __init__(self, folder, actors, shown, *, encoder="tests.patch_encoder:create_slow", **pool):
        self.settings = Settings(store=str(folder / "maps"), encode={"encoder": encoder})
        self.store = Store.open(self.settings.store, create=True)
        self.observations = observations_of(self.store, SITE, shown)
        self.spool = VectorSpool(self.settings.store, SITE, EncoderInfo("patch", 4, "patch-1", {}))
        self.pool = EncoderPool(
            lambda: actors.start(ENCODER, self.settings, cpus=0.1, concurrency=3),
            spool_vectors,
            PoolLimits(**{"least": 1, "most": 1, "batch_states": 4, "waiting_states": 1_000, **pool}),
        )

    async def start(self):
        """Add every state to the queue; return the jobs."""
        jobs = [EncodeJob(o.node_id, o, self.spool) for o in self.observations.values()]
        await self.pool.load()
        for batch in plan_batches(jobs, 4):
            await self.pool.add(StateBatch(tuple(batch), {}))
        return jobs

    async def pids(self):
        return [await member.actor.call("process") for member in self.pool._members if member.is_ready]

    def close(self):
        for member in list(self.pool._members):
            self.pool._release(member)

    def check_all_encoded(self, but=()):
        """Check that the vectors of every state equal those of an undisturbed encoder in this process."""
        alone = create_encoder(self.settings.encode, self.store.blobs)
        pages = self.spool.read()
        assert pages.keys() == self.observations.keys() - set(but)
        for key, page in pages.items():
            (expected,) = alone.encode_pages([self.observations[key]], {})
            assert np.array_equal(page.vectors, expected.vectors.astype(np.float16).astype(np.float32))


@pytest.fixture
def actors(one_cpu):
    if one_cpu == "ray":
        yield RayActors()
        return
    with local_actors() as local:
        yield local


@pytest.fixture
def encoding(tmp_path, actors):
    made = []

    def make(shown, **details):
        made.append(Encoding(tmp_path, actors, shown, **details))
        return made[-1]

    return make


def run(work, encoding):
    async def all_of_it():
        try:
            return await asyncio.wait_for(work(), 120)
        finally:
            encoding.close()

    return asyncio.run(all_of_it())


@ON_BOTH
def test_killed_encoder_loses_no_state(encoding):
    pictures = encoding(colours(40), least=2, most=2)

    async def work():
        jobs = await pictures.start()
        await jobs[0].done
        victim = (await pictures.pids())[0]
        os.kill(victim, signal.SIGKILL)
        results = await asyncio.gather(*(job.done for job in jobs))
        assert victim not in await pictures.pids()
        return results

    assert set(run(work, pictures)) == {None}
    pictures.check_all_encoded()
    report = pictures.pool.report()
    assert (report.actors_lost, report.splits, report.unencodable, report.states) == (1, 0, 0, 40)


@pytest.mark.parametrize(("colour", "why"), [(KILLS, "died"), (RAISES, "ZeroDivisionError")])
def test_state_that_kills_encoders_is_dropped_and_all_others_are_encoded(encoding, colour, why):
    pictures = encoding([*colours(9), colour, *colours(14)[9:]])

    async def work():
        jobs = await pictures.start()
        return await asyncio.gather(*(job.done for job in jobs))

    results = run(work, pictures)
    (bad,) = [place for place, result in enumerate(results) if result is not None]
    assert bad == 9
    assert why in results[9].reason
    pictures.check_all_encoded(but=[list(pictures.observations)[9]])
    assert pictures.pool.report().splits == 2  # four, two, one


def test_non_finite_vectors_fail_one_state_and_no_encoder(encoding):
    pictures = encoding([*colours(5), NOT_A_NUMBER])

    async def work():
        return await asyncio.gather(*(job.done for job in await pictures.start()))

    results = run(work, pictures)
    assert isinstance(results[5], Unencodable)
    assert "not finite" in results[5].reason
    pictures.check_all_encoded(but=[list(pictures.observations)[5]])
    assert pictures.pool.report().actors_lost == 0


@ON_BOTH
def test_pool_stops_when_encoders_die_of_every_batch(encoding):
    pictures = encoding([KILLS] * 40)

    async def work():
        jobs = await pictures.start()
        results = await asyncio.gather(*(job.done for job in jobs), return_exceptions=True)
        with pytest.raises(EncoderLost):
            await pictures.pool.load()
        return results

    results = run(work, pictures)
    assert isinstance(results[-1], EncoderLost)
    assert pictures.pool.report().actors_lost <= max_losses_in_row(4) + 1


def test_encoder_is_started_while_batches_wait_and_stopped_when_idle(encoding, monkeypatch):
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.5)
    # On a busy machine an encoder may idle for minutes between two batches. It is stopped only when all are done.
    monkeypatch.setattr(pool_size, "IDLE_SECONDS", float("inf"))
    pictures = encoding(colours(120), most=2)

    async def work():
        jobs = await pictures.start()
        await asyncio.gather(*(job.done for job in jobs))
        monkeypatch.setattr(pool_size, "IDLE_SECONDS", 0.5)
        busy = len(pictures.pool._members)
        async with asyncio.timeout(20):
            while len(pictures.pool._members) > 1:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.1)
        return busy

    assert run(work, pictures) == 2
    report = pictures.pool.report()
    assert (report.actors_at_once, report.actors_started, report.actors_lost) == (2, 2, 0)
    pictures.check_all_encoded()
    assert 0 <= report.idle_share < 1
    assert report.busy_seconds >= 120 * 0.05


def test_add_blocks_when_queue_is_full(encoding):
    pictures = encoding(colours(24), waiting_states=4)

    async def work():
        adding = asyncio.create_task(pictures.start())
        longest = 0
        while not adding.done():
            longest = max(longest, pictures.pool._waiting)
            await asyncio.sleep(0.01)
        await asyncio.gather(*(job.done for job in adding.result()))
        return longest

    assert 0 < run(work, pictures) <= 4
    pictures.check_all_encoded()


def test_encoder_that_cannot_be_loaded_fails_all_waiting_jobs(encoding, tmp_path):
    pictures = encoding(colours(1), encoder="text")
    pictures.settings = pictures.settings.model_copy(
        update={"encode": pictures.settings.encode.model_copy(update={"weights": tmp_path / "none"})}
    )

    async def work():
        with pytest.raises(WeightsMissing):
            await pictures.pool.load()
        with pytest.raises(WeightsMissing):
            await pictures.pool.add(
                StateBatch((EncodeJob("a", next(iter(pictures.observations.values())), pictures.spool),))
            )

    run(work, pictures)


def test_vectors_that_cannot_be_spooled_fail_their_jobs(encoding, tmp_path):
    pictures = encoding(colours(4))
    (tmp_path / "maps" / "runs").write_text("in the way")

    async def work():
        results = await asyncio.gather(*(job.done for job in await pictures.start()), return_exceptions=True)
        assert all(isinstance(result, WaygraphError) and "write vectors" in str(result) for result in results)

    run(work, pictures)


def test_states_whose_encoding_ends_while_the_spool_is_read_count_as_streamed(encoding, monkeypatch):
    pictures, waited = encoding(colours(3)), []
    read = VectorSpool.read

    async def work():
        site_vectors = SiteVectorizer(pictures.settings.store, pictures.pool, batch_states=1, share=lambda value: value)

        def read_early(spool):
            """Return what was spooled at the call, only after a state that was pending is encoded."""
            found, deadline = read(spool), time.monotonic() + PATIENCE_S
            if len(site_vectors._pending) == 3:
                waited.append(set(found))
            while waited and len(site_vectors._pending) == 3:
                assert time.monotonic() < deadline
                time.sleep(0.02)  # a poll from another thread than the loop's
            return found

        monkeypatch.setattr(VectorSpool, "read", read_early)
        for observation in pictures.observations.values():
            await site_vectors.offer(SITE, observation)
        return await site_vectors.encode_site(SITE, pictures.observations, lambda *_: None)

    vectors = run(work, pictures)
    assert waited == [set()]
    assert (vectors.encoded, vectors.streamed) == (3, 3)
    assert pictures.pool.report().states == 3  # none was encoded again


# -- whole runs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def serve():
    with ExitStack() as servers:
        yield lambda pages: servers.enter_context(FixtureServer(pages))


def site_of(shown, last=None):
    """Return a chain of pages, each with a link to the next one."""
    pages = {}
    for place, (red, green, blue) in enumerate(shown):
        link = f'<a href="/{place + 1}">Next</a>' if place + 1 < len(shown) else ""
        html = f"<title>Page {place}</title><!-- shows {red} {green} {blue} --><h1>Page {place}</h1>{link}"
        pages[f"/{place}" if place else "/"] = html
    return pages


def index(urls, tmp_path, encoder="tests.patch_encoder:create", **jobs):
    settings = Settings(
        store=str(tmp_path / "maps"),
        encode={"encoder": encoder},
        explore={"depth": 20},
        jobs={"ray": False, "states_per_batch": 4, **jobs},
    )
    return run_index(urls, settings=settings, on_event=lambda _: None, explore=EXPLORE), Store.open(settings.store)


def test_states_are_encoded_while_their_site_is_explored(serve, tmp_path):
    pages, encoded_before = site_of(colours(6)), []
    last = pages["/5"]

    def when_some_are_encoded(_):
        deadline = time.monotonic() + PATIENCE_S
        while not (batches := list(spool_folder(str(tmp_path / "maps"), site_key(site.url)).rglob("*.parquet"))):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)  # a poll: nothing tells us of a file
        encoded_before.extend(batches)
        return last

    site = serve({**pages, "/5": when_some_are_encoded})
    report, store = index([site.url], tmp_path)
    (outcome,) = report.sites
    assert outcome.status == "published"
    assert (outcome.publication.encoded, outcome.publication.streamed) == (6, 6)
    assert encoded_before
    version = store.read(outcome.site)
    assert set(version.pages) == set(version.graph.nodes)
    assert version.manifest.encoder.context == {"grid": 4}
    assert report.encoding.states == 6
    assert not spool_folder(str(tmp_path / "maps"), outcome.site).exists()


def test_one_state_that_cannot_be_encoded_is_published_without_vectors_and_reported(serve, tmp_path):
    good, bad = serve(site_of(colours(3))), serve(site_of([*colours(7), KILLS]))
    report, store = index([good.url, bad.url], tmp_path)
    assert report.exit_code == 0
    first, second = report.sites
    assert first.publication.without_vectors == 0
    assert second.publication.without_vectors == 1
    (failure,) = second.publication.failures
    assert failure.url.endswith("/7")
    version = store.read(second.site)
    assert set(version.graph.nodes) - set(version.pages) == {failure.node_id}
    assert set(version.manifest.report["without_vectors"]) == {failure.node_id}
    assert report.encoding.unencodable == 1
    assert report.encoding.actors_lost >= 2


def test_site_without_encodable_states_fails_and_others_are_published(serve, tmp_path):
    good, bad = serve(site_of(colours(3))), serve(site_of([NOT_A_NUMBER]))
    report, store = index([good.url, bad.url], tmp_path)
    assert [site.status for site in report.sites] == ["published", "failed"]
    assert report.sites[1].error.type == "encoding-failed"
    assert store.sites() == [report.sites[0].site]


def test_equal_screenshots_are_encoded_once_across_runs(serve, tmp_path):
    site = serve(site_of([*colours(3), colours(3)[0]]))
    outcomes = [index([site.url], tmp_path)[0] for _ in range(2)]
    assert [report.sites[0].error for report in outcomes] == [None, None]
    assert [(r.sites[0].publication.encoded, r.sites[0].publication.reused) for r in outcomes] == [(3, 1), (0, 4)]
    assert outcomes[1].encoding.states == 0
    assert not spool_folder(str(tmp_path / "maps"), outcomes[0].sites[0].site).exists()
