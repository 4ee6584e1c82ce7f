"""Waiting queries are encoded in batches; cancelling one caller does not cancel others."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from waygraph.core.errors import InvalidInput, Overloaded, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.serve.query.async_encoder import CachedQueryEncoder
from waygraph.serve.query.batching_encoder import BatchingQueryEncoder
from waygraph.serve.query.caller_queue import CALLER
from waygraph.serve.query.query_encoder import MAX_BATCH, EncodedQuery, QueryEncoder
from waygraph.serve.query.remote_encoder import RemoteQueryEncoder
from waygraph.serve.telemetry.metrics import Metrics


class GatedEncoder(QueryEncoder):
    """Encodes when the test allows it, and records its batches; the vector of a query is its length."""

    def __init__(self) -> None:
        super().__init__(EncodeSettings())
        self.let = threading.Event()
        self.batches: list[list[str]] = []

    def encode_batch(self, texts: Sequence[str]) -> list[EncodedQuery]:
        self.batches.append(list(texts))
        assert self.let.wait(20)
        if "bad" in texts:
            raise InvalidInput("bad")
        return [EncodedQuery(np.full((1, 2), len(text), np.float32), "test") for text in texts]


@pytest.fixture
async def encoding():
    made = BatchingQueryEncoder(GatedEncoder(), max_waiting=20, metrics=Metrics())
    yield made
    made._encoder.let.set()
    made.close()


def asked(encoding: BatchingQueryEncoder, *texts: str) -> list[asyncio.Task]:
    return [asyncio.create_task(encoding.encode(text)) for text in texts]


def test_reading_a_store_loads_no_library_of_the_service():
    program = (
        "import sys, waygraph.sdk.local; print({'fastapi', 'prometheus_client', 'ray', 'anyio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


async def test_the_first_query_is_encoded_at_once_and_the_others_in_one_batch(encoding):
    tasks = asked(encoding, "one", "three", "three", "fifteen")
    await asyncio.sleep(0)
    assert encoding.waiting == 3
    encoding._encoder.let.set()
    lengths = [encoded.vectors[0, 0] for encoded in await asyncio.gather(*tasks)]
    assert lengths == [3, 5, 5, 7]
    assert encoding._encoder.batches == [["one"], ["three", "fifteen"]]
    assert encoding.waiting == 0


async def test_a_batch_has_a_largest_size(encoding):
    tasks = asked(encoding, *map(str, range(20)))
    await asyncio.sleep(0)
    encoding._encoder.let.set()
    await asyncio.gather(*tasks)
    assert [len(batch) for batch in encoding._encoder.batches] == [1, MAX_BATCH, 19 - MAX_BATCH]


async def test_a_query_beyond_the_limit_is_refused_and_waiting_queries_are_answered(encoding):
    tasks = asked(encoding, *map(str, range(21)))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await encoding.encode("one more")
    encoding._encoder.let.set()
    assert len(await asyncio.gather(*tasks)) == 21


async def test_a_caller_with_many_queries_delays_itself_and_not_the_others(encoding):
    async def asks(caller, *texts):
        CALLER.set(caller)
        return await asyncio.gather(*asked(encoding, *texts), return_exceptions=True)

    first = asyncio.create_task(encoding.encode("first"))
    await asyncio.sleep(0)
    many = asyncio.create_task(asks("many", *(f"many {number}" for number in range(20))))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(asks(caller, f"{caller} 1", f"{caller} 2")) for caller in ("one", "other")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(encoding._queue) == 20
    encoding._encoder.let.set()
    await first
    assert all(isinstance(each, EncodedQuery) for answers in await asyncio.gather(*others) for each in answers)
    assert encoding._encoder.batches[1][:6] == ["many 0", "one 1", "other 1", "many 1", "one 2", "other 2"]
    # The newest made room.
    assert [isinstance(each, Overloaded) for each in await many] == [False] * 16 + [True] * 4


async def test_a_query_without_remaining_callers_is_not_encoded(encoding):
    first, gone, shared, other = asked(encoding, "first", "gone", "shared", "shared")
    await asyncio.sleep(0)
    gone.cancel()
    shared.cancel()
    await asyncio.wait([gone, shared])
    encoding._encoder.let.set()
    await asyncio.gather(first, other)
    assert encoding._encoder.batches == [["first"], ["shared"]]


async def test_a_query_that_cannot_be_encoded_raises_and_later_ones_are_encoded(encoding):
    first, bad = asked(encoding, "first", "bad")
    encoding._encoder.let.set()
    await first
    with pytest.raises(InvalidInput):
        await bad
    assert (await encoding.encode("good")).vectors[0, 0] == 4


async def test_a_query_that_cannot_be_encoded_does_not_fail_the_rest_of_its_batch(encoding):
    tasks = asked(encoding, "first", "good", "bad", "better")
    encoding._encoder.let.set()
    first, good, bad, better = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(bad, InvalidInput)
    assert [encoded.vectors[0, 0] for encoded in (first, good, better)] == [5, 4, 6]


async def test_equal_queries_are_encoded_once(encoding):
    remembered = CachedQueryEncoder(encoding, 10_000, Metrics())
    encoding._encoder.let.set()
    found = [await remembered.encode(text) for text in ("the  same", "the same", " the same\n")]
    assert encoding._encoder.batches == [["the same"]]
    assert found[0] is found[1] is found[2]


async def test_errors_of_the_remote_encoder_are_raised_in_the_caller():
    answers = {None: None, "good": EncodedQuery(np.ones((1, 2), np.float32), "there"), "bad": InvalidInput("bad")}

    async def ask(text: str | None):
        return answers[text]

    elsewhere = RemoteQueryEncoder(ask, slots=1, max_waiting=1, metrics=Metrics())
    assert elsewhere.unavailable is not None
    elsewhere.start()
    await elsewhere._starting
    assert (elsewhere.unavailable, elsewhere.has_failed) == (None, False)
    assert (await elsewhere.encode("good")).fingerprint == "there"
    with pytest.raises(InvalidInput, match="bad"):
        await elsewhere.encode("bad")
    answers[None] = WeightsMissing("none")
    elsewhere.start()
    await elsewhere._starting
    assert (type(elsewhere.unavailable), elsewhere.has_failed) == (WeightsMissing, True)
    elsewhere.close()


async def test_a_query_beyond_the_limit_is_not_sent_to_the_remote_encoder():
    answer = asyncio.get_running_loop().create_future()

    async def ask(_: str | None):
        return await answer

    elsewhere = RemoteQueryEncoder(ask, slots=1, max_waiting=1, metrics=Metrics())
    first, second = (asyncio.create_task(elsewhere.encode(text)) for text in ("first", "second"))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await elsewhere.encode("third")
    answer.set_result(EncodedQuery(np.ones((1, 2), np.float32), "there"))
    await asyncio.gather(first, second)
    assert elsewhere.waiting == 0
