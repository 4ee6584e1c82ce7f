"""Questions that wait are encoded together; who has gone is not waited for, and takes nobody along."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from serve.encoding import MAX_TOGETHER, EncodedQuestion, EncodingElsewhere, EncodingHere, QueryEncoder, Remembered
from serve.metrics import Metrics
from waygraph.errors import InvalidInput, Overloaded, WeightsMissing
from waygraph.settings import EncodeSettings


class GatedEncoder(QueryEncoder):
    """Encodes when it is let, and remembers what it was asked at once; a question's vector is its length."""

    def __init__(self) -> None:
        super().__init__(EncodeSettings())
        self.let = threading.Event()
        self.batches: list[list[str]] = []

    def encode_together(self, texts: Sequence[str]) -> list[EncodedQuestion]:
        self.batches.append(list(texts))
        assert self.let.wait(20)
        if "bad" in texts:
            raise InvalidInput("bad")
        return [EncodedQuestion(np.full((1, 2), len(text), np.float32), "test") for text in texts]


@pytest.fixture
async def encoding():
    made = EncodingHere(GatedEncoder(), max_waiting=20, metrics=Metrics())
    yield made
    made._encoder.let.set()
    made.close()


def asked(encoding: EncodingHere, *texts: str) -> list[asyncio.Task]:
    return [asyncio.create_task(encoding.encode(text)) for text in texts]


def test_asking_a_store_without_a_service_needs_nothing_of_a_service():
    program = "import sys, waygraph.local; print({'fastapi', 'prometheus_client', 'ray', 'anyio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


async def test_the_first_question_waits_for_nobody_and_the_others_are_encoded_together(encoding):
    tasks = asked(encoding, "one", "three", "three", "fifteen")
    await asyncio.sleep(0)
    assert encoding.waiting == 3
    encoding._encoder.let.set()
    lengths = [encoded.vectors[0, 0] for encoded in await asyncio.gather(*tasks)]
    assert lengths == [3, 5, 5, 7]
    assert encoding._encoder.batches == [["one"], ["three", "fifteen"]]
    assert encoding.waiting == 0


async def test_no_more_than_so_many_are_encoded_at_once(encoding):
    tasks = asked(encoding, *map(str, range(20)))
    await asyncio.sleep(0)
    encoding._encoder.let.set()
    await asyncio.gather(*tasks)
    assert [len(batch) for batch in encoding._encoder.batches] == [1, MAX_TOGETHER, 19 - MAX_TOGETHER]


async def test_who_comes_when_too_many_wait_is_refused_and_the_others_are_answered(encoding):
    tasks = asked(encoding, *map(str, range(21)))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await encoding.encode("one more")
    encoding._encoder.let.set()
    assert len(await asyncio.gather(*tasks)) == 21


async def test_a_question_that_nobody_waits_for_any_more_is_not_encoded(encoding):
    first, gone, shared, other = asked(encoding, "first", "gone", "shared", "shared")
    await asyncio.sleep(0)
    gone.cancel()
    shared.cancel()
    await asyncio.wait([gone, shared])
    encoding._encoder.let.set()
    await asyncio.gather(first, other)
    assert encoding._encoder.batches == [["first"], ["shared"]]


async def test_a_question_that_cannot_be_encoded_is_told_and_later_ones_are_encoded(encoding):
    first, bad = asked(encoding, "first", "bad")
    encoding._encoder.let.set()
    await first
    with pytest.raises(InvalidInput):
        await bad
    assert (await encoding.encode("good")).vectors[0, 0] == 4


async def test_a_question_that_cannot_be_encoded_spoils_none_that_is_encoded_with_it(encoding):
    tasks = asked(encoding, "first", "good", "bad", "better")
    encoding._encoder.let.set()
    first, good, bad, better = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(bad, InvalidInput)
    assert [encoded.vectors[0, 0] for encoded in (first, good, better)] == [5, 4, 6]


async def test_the_same_question_is_encoded_once(encoding):
    remembered = Remembered(encoding, 10_000, Metrics())
    encoding._encoder.let.set()
    found = [await remembered.encode(text) for text in ("the  same", "the same", " the same\n")]
    assert encoding._encoder.batches == [["the same"]]
    assert found[0] is found[1] is found[2]


async def test_another_process_is_asked_and_its_errors_are_raised_here():
    answers = {None: None, "good": EncodedQuestion(np.ones((1, 2), np.float32), "there"), "bad": InvalidInput("bad")}

    async def ask(text: str | None):
        return answers[text]

    elsewhere = EncodingElsewhere(ask, max_waiting=1, metrics=Metrics())
    assert elsewhere.missing is not None
    elsewhere.start()
    await elsewhere._starting
    assert (elsewhere.missing, elsewhere.failed) == (None, False)
    assert (await elsewhere.encode("good")).fingerprint == "there"
    with pytest.raises(InvalidInput, match="bad"):
        await elsewhere.encode("bad")
    answers[None] = WeightsMissing("none")
    elsewhere.start()
    await elsewhere._starting
    assert (type(elsewhere.missing), elsewhere.failed) == (WeightsMissing, True)
    elsewhere.close()


async def test_only_so_many_questions_are_under_way_to_another_process():
    answer = asyncio.get_running_loop().create_future()

    async def ask(_: str | None):
        return await answer

    elsewhere = EncodingElsewhere(ask, max_waiting=1, metrics=Metrics())
    first = asyncio.create_task(elsewhere.encode("first"))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await elsewhere.encode("second")
    answer.set_result(EncodedQuestion(np.ones((1, 2), np.float32), "there"))
    await first
    assert elsewhere.waiting == 0
