"""The encoder pool when machines are lost: the real pool with simulated actors that die."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from waygraph.index.graph import Observation
from waygraph.pipeline.jobs.actors.protocol import ActorDied, ActorUnreachable, MachineDied
from waygraph.pipeline.jobs.encoding.batches import StateBatch
from waygraph.pipeline.jobs.encoding.encoder_actor import EncoderIdentity, Unencodable
from waygraph.pipeline.jobs.encoding.encoder_pool import EncodeJob, EncoderPool, PoolLimits
from waygraph.pipeline.jobs.failures import MAX_LOST_MACHINES, max_losses_in_row

IDENTITY = EncoderIdentity("simulated", 4, "simulated-1", needs_whole_site=False, reads="text")
LOST = MachineDied("its node has died")


class Actor:
    """An encoder; `dies` returns the error for a batch, or None."""

    def __init__(self, dies: Callable[[Sequence[Any]], Exception | None]) -> None:
        self._dies = dies

    async def call(self, method: str, *arguments: Any) -> Any:
        return await getattr(self, f"_{method}")(*arguments)

    def kill(self) -> None:
        pass

    async def _load(self) -> EncoderIdentity:
        return IDENTITY

    async def _encode(self, observations: Sequence[Any], _context: object) -> tuple[list[Any], float]:
        await asyncio.sleep(0)
        if (error := self._dies(observations)) is not None:
            raise error
        return list(observations), 0.1

    async def _process(self) -> int:
        raise LOST


@pytest.fixture
def encode():
    """Encodes batches of states (any objects) in encoders that die as told; gives the results and the report."""

    async def keep(_jobs, _encoded):
        pass

    async def run(dies, *batches, **options):
        limits = PoolLimits(**{"least": 1, "most": 1, "batch_states": 4, "waiting_states": 100, **options})
        pool = EncoderPool(lambda: Actor(dies), keep, limits)
        await pool.load()
        jobs = [[EncodeJob(str(state), state, None) for state in batch] for batch in batches]
        for each in jobs:
            await pool.add(StateBatch(tuple(each)))
        async with asyncio.timeout(30):
            results = await asyncio.gather(*(job.done for each in jobs for job in each))
        return results, pool.report()

    return run


def times(count: int, error: Exception) -> Callable[[Sequence[Observation]], Exception | None]:
    """Return a function that gives the error for the first `count` batches."""
    left = iter([error] * count)
    return lambda _: next(left, None)


@pytest.mark.parametrize("error", [LOST, ActorUnreachable("RpcError")])
async def test_lost_machines_are_not_attributed_to_the_state_in_work(encode, error):
    """Two dead processes would be. The actor is queried for the cause when an encoder is unreachable."""
    results, report = await encode(times(5, error), ["a"])
    assert results == [None]
    assert (report.actors_lost, report.unencodable, report.splits) == (5, 0, 0)


async def test_lost_machine_with_many_encoders_does_not_stop_the_pool(encode):
    encoders = max_losses_in_row(4) + 4
    batches = [[f"{i}{part}" for part in "abcd"] for i in range(encoders)]
    results, report = await encode(times(encoders, LOST), *batches, least=encoders, most=encoders)
    assert set(results) == {None}
    assert (report.actors_lost, report.unencodable, report.splits) == (encoders, 0, 0)


async def test_state_in_work_during_too_many_lost_machines_is_dropped(encode):
    results, report = await encode(lambda states: LOST if "a" in states else None, ["a"], ["b"])
    assert [type(result) for result in results] == [Unencodable, type(None)]
    assert MAX_LOST_MACHINES < report.actors_lost <= MAX_LOST_MACHINES + 3


async def test_dead_processes_are_attributed_to_the_state_in_work(encode):
    results, report = await encode(lambda states: ActorDied() if "a" in states else None, ["a"], ["b"])
    assert [type(result) for result in results] == [Unencodable, type(None)]
    assert report.actors_lost == 3
