"""What does the pool of encoders make of machines that go away? Simulated actors, the errors of Ray, the real pool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError

from index.graph import Observation
from pipeline.jobs.encoding import encoder_pool as pools
from pipeline.jobs.encoding.batches import Batch, most_losses
from pipeline.jobs.encoding.encoder_actor import EncoderIdentity, Unencodable
from pipeline.jobs.encoding.encoder_pool import EncoderPool, Job
from pipeline.jobs.failures import MOST_MACHINES

IDENTITY = EncoderIdentity("simulated", 4, "simulated-1", needs_whole_site=False, reads="text")
LOST = RayActorError(error_msg="The actor died because its node has died. Node Id: ab12")


class Actor:
    """An encoder; `dies` says of each batch of which error, if any."""

    def __init__(self, dies: Callable[[Sequence[Any]], Exception | None]) -> None:
        self._dies = dies

    @property
    def load(self) -> SimpleNamespace:
        return remote(self._load)

    @property
    def encode(self) -> SimpleNamespace:
        return remote(self._encode)

    @property
    def process(self) -> SimpleNamespace:
        return remote(self._process)

    async def _load(self) -> EncoderIdentity:
        return IDENTITY

    async def _encode(self, observations: Sequence[Any], _context: object) -> tuple[list[Any], float]:
        await asyncio.sleep(0)
        if (error := self._dies(observations)) is not None:
            raise error
        return list(observations), 0.1

    async def _process(self) -> int:
        raise LOST


def remote(call: Callable[..., Awaitable[Any]]) -> SimpleNamespace:
    return SimpleNamespace(remote=call)


@pytest.fixture
def encode(monkeypatch):
    """Encodes batches of states (any objects) in encoders that die as told; gives the results and the report."""
    monkeypatch.setattr(pools, "ray", SimpleNamespace(kill=lambda _: None))

    async def keep(_jobs, _encoded):
        pass

    async def run(dies, *batches, **options):
        pool = EncoderPool(lambda: Actor(dies), keep, **{"least": 1, "most": 1, "size": 4, "room": 100, **options})
        await pool.load()
        jobs = [[Job(str(state), state, None) for state in batch] for batch in batches]
        for each in jobs:
            await pool.add(Batch(tuple(each)))
        async with asyncio.timeout(30):
            results = await asyncio.gather(*(job.done for each in jobs for job in each))
        return results, pool.report()

    return run


def times(count: int, error: Exception) -> Callable[[Sequence[Observation]], Exception | None]:
    """Of every encoder of the first so many, the end."""
    left = iter([error] * count)
    return lambda _: next(left, None)


@pytest.mark.parametrize("error", [LOST, ActorUnavailableError("RpcError", None)])
async def test_machines_that_go_away_under_one_state_are_not_its_doing(encode, error):
    """Two processes that died of it would be. Of an encoder that cannot be reached, Ray is asked what became of it."""
    results, report = await encode(times(5, error), ["a"])
    assert results == [None]
    assert (report.actors_lost, report.unencodable, report.splits) == (5, 0, 0)


async def test_a_machine_with_many_encoders_does_not_end_all_encoding(encode):
    encoders = most_losses(4) + 4
    batches = [[f"{i}{part}" for part in "abcd"] for i in range(encoders)]
    results, report = await encode(times(encoders, LOST), *batches, least=encoders, most=encoders)
    assert set(results) == {None}
    assert (report.actors_lost, report.unencodable, report.splits) == (encoders, 0, 0)


async def test_a_state_under_which_machines_go_away_without_end_is_given_up(encode):
    results, report = await encode(lambda states: LOST if "a" in states else None, ["a"], ["b"])
    assert [type(result) for result in results] == [Unencodable, type(None)]
    assert MOST_MACHINES < report.actors_lost <= MOST_MACHINES + 3


async def test_processes_that_die_of_a_state_are_its_doing_as_before(encode):
    results, report = await encode(lambda states: ActorDiedError() if "a" in states else None, ["a"], ["b"])
    assert [type(result) for result in results] == [Unencodable, type(None)]
    assert report.actors_lost == 3
