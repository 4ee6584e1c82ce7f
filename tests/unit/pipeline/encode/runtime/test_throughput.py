"""Batches stay within their token budget, shrink when memory runs out, and keep the order of results."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.errors import BadImage, EncodingFailed
from waygraph.pipeline.encode.runtime import throughput
from waygraph.pipeline.encode.runtime.batching import token_batches
from waygraph.pipeline.encode.runtime.throughput import BatchRunner

LENGTHS = st.lists(st.integers(1, 2000), max_size=60)


@given(lengths=LENGTHS, budget=st.integers(1, 5000))
def test_every_sequence_is_in_one_batch_and_padded_batches_fit_the_budget(lengths, budget):
    batches = token_batches(lengths, budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[index] for index in batch)
        assert len(batch) == 1 or longest * len(batch) <= budget
        assert all(longest * 8 < lengths[index] * 9 for index in batch)


@given(lengths=LENGTHS)
def test_the_longest_sequences_come_first(lengths):
    firsts = [lengths[batch[0]] for batch in token_batches(lengths, 3000)]
    assert firsts == sorted(firsts, reverse=True)


def test_pages_of_one_size_fill_the_budget():
    assert [len(batch) for batch in token_batches([746] * 50, 16_384)] == [21, 21, 8]


class Machine:
    """A model whose memory holds a number of tokens; a vector's components are its item and its place."""

    def __init__(self, memory: int, *, budget: int, threads: int = 2) -> None:
        self.memory = memory
        self.sizes: list[int] = []
        self.prepared: list[int] = []
        self._lock = threading.Lock()
        self.runner = BatchRunner[tuple[int, int], tuple[int, int]](
            self.prepare, self.forward, budget=budget, threads=threads
        )

    def prepare(self, item: tuple[int, int]) -> tuple[int, int]:
        with self._lock:
            self.prepared.append(item[0])
        return item

    def forward(self, ready) -> torch.Tensor:
        longest = max(length for _, length in ready)
        if longest * len(ready) > self.memory:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        self.sizes.append(longest * len(ready))
        out = torch.full((len(ready), longest, 2), -1.0)
        for row, (name, length) in enumerate(ready):
            out[row, :length, 0] = name
            out[row, :length, 1] = torch.arange(length)
        return out

    def run(self, lengths: list[int]) -> list[np.ndarray]:
        return self.runner.run(list(enumerate(lengths)), lengths)


def assert_right(results: list[np.ndarray], lengths: list[int]) -> None:
    assert len(results) == len(lengths)
    for name, (vectors, length) in enumerate(zip(results, lengths, strict=True)):
        assert vectors.dtype == np.float32
        assert np.array_equal(vectors, np.stack([np.full(length, name), np.arange(length)], axis=1))


@given(lengths=LENGTHS, budget=st.integers(1, 20_000), memory=st.integers(2_000, 20_000))
def test_results_are_in_order_for_any_budget_and_memory(lengths, budget, memory):
    machine = Machine(memory, budget=budget)
    assert_right(machine.run(lengths), lengths)
    assert sorted(machine.prepared) == list(range(len(lengths)))


def test_budget_learned_from_out_of_memory_is_kept(caplog):
    machine = Machine(6_000, budget=100_000)
    assert_right(machine.run([700] * 40), [700] * 40)
    assert machine.runner.budget <= 6_000
    assert min(machine.sizes) > 1_400
    tries = caplog.text.count("encode/out_of_memory")
    assert tries > 0
    assert_right(machine.run([700] * 40), [700] * 40)
    assert caplog.text.count("encode/out_of_memory") == tries


def test_a_sequence_that_never_fits_is_an_error():
    with pytest.raises(EncodingFailed, match="One sequence of 900 tokens") as caught:
        Machine(800, budget=100_000).run([900, 100, 100])
    assert "MAX_PIXELS" in caught.value.hint


def test_other_errors_are_not_treated_as_out_of_memory():
    def forward(_):
        raise RuntimeError("a bug")

    runner = BatchRunner[int, int](lambda item: item, forward, budget=100, threads=1)
    with pytest.raises(RuntimeError, match="a bug"):
        runner.run([1], [1])


def test_item_that_cannot_be_prepared_is_an_error_and_the_runner_stays_usable():
    def prepare(item: int) -> int:
        if item == 3:
            raise BadImage("It is damaged.")
        return item

    runner = BatchRunner[int, int](prepare, lambda ready: torch.ones(len(ready), 1, 2), budget=2, threads=2)
    with pytest.raises(BadImage):
        runner.run(list(range(10)), [1] * 10)
    assert len(runner.run([1, 2], [1, 1])) == 2


def test_non_finite_results_are_an_error():
    runner = BatchRunner[int, int](
        lambda item: item, lambda ready: torch.full((len(ready), 2, 2), float("inf")), budget=9, threads=1
    )
    with pytest.raises(EncodingFailed, match="not finite"):
        runner.run([1], [2])


def test_non_finite_padding_is_ignored():
    def forward(_):
        vectors = torch.ones(1, 3, 2)
        vectors[0, 2] = float("nan")
        return vectors

    runner = BatchRunner[int, int](lambda item: item, forward, budget=9, threads=1)
    assert np.array_equal(runner.run([1], [2])[0], np.ones((2, 2)))


def test_the_next_batch_is_prepared_while_one_is_computed():
    """The model waits for the preparation of the batch after its own: without overlap it would wait for ever."""
    ready = [threading.Event() for _ in range(4)]

    def prepare(item: int) -> int:
        ready[item].set()
        return item

    def forward(items) -> torch.Tensor:
        assert ready[min(items[0] + 1, 3)].wait(10)
        return torch.ones(1, 1, 2)

    runner = BatchRunner[int, int](prepare, forward, budget=1, threads=1)
    assert len(runner.run([0, 1, 2, 3], [1, 1, 1, 1])) == 4


def test_a_second_call_prepares_while_the_first_computes_and_computes_before_the_first_has_landed(monkeypatch):
    """The first call computes until the second has prepared, and its vectors land when the second computes."""
    prepared, computing, second = threading.Event(), threading.Event(), threading.Event()
    land = throughput._Flying.land

    def land_late(self, lengths, results) -> None:
        assert second.wait(10)
        land(self, lengths, results)

    monkeypatch.setattr(throughput._Flying, "land", land_late)

    def prepare(item: int) -> int:
        if item == 2:
            prepared.set()
        return item

    def forward(items) -> torch.Tensor:
        computing.set()
        assert prepared.wait(10)
        if items == [2]:
            second.set()
        return torch.ones(len(items), 1, 2)

    runner = BatchRunner[int, int](prepare, forward, budget=1, threads=2)
    with ThreadPoolExecutor(1) as other:
        first = other.submit(runner.run, [1], [1])
        assert computing.wait(10)
        assert len(runner.run([2], [1])) == 1
        assert len(first.result()) == 1


def test_a_call_without_items_does_not_wait_for_another_call():
    computing, done = threading.Event(), threading.Event()

    def forward(items) -> torch.Tensor:
        computing.set()
        assert done.wait(10)
        return torch.ones(len(items), 1, 2)

    runner = BatchRunner[int, int](lambda item: item, forward, budget=1, threads=1)
    with ThreadPoolExecutor(1) as other:
        first = other.submit(runner.run, [1], [1])
        assert computing.wait(10)
        assert runner.run([], []) == []
        done.set()
        first.result()


def test_a_waiting_call_uses_the_budget_that_the_one_before_it_learned():
    sizes: list[int] = []
    full, planned = threading.Event(), threading.Event()

    def prepare(item: int) -> int:
        if item == 100:
            planned.set()
        return item

    def forward(items) -> torch.Tensor:
        full.set()
        assert planned.wait(10)
        if len(items) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        sizes.append(len(items))
        return torch.ones(len(items), 1, 2)

    runner = BatchRunner[int, int](prepare, forward, budget=8, threads=2)
    with ThreadPoolExecutor(1) as other:
        first = other.submit(runner.run, list(range(8)), [1] * 8)
        assert full.wait(10)
        assert len(runner.run(list(range(100, 108)), [1] * 8)) == 8
        assert len(first.result()) == 8
    assert runner.budget == 2
    assert sizes == [2] * 8


def test_threads_compute_one_batch_at_a_time():
    running = []

    def forward(items) -> torch.Tensor:
        running.append(1)
        assert len(running) == 1
        time.sleep(0.001)
        running.pop()
        return torch.ones(len(items), 1, 2)

    runner = BatchRunner[int, int](lambda item: item, forward, budget=1, threads=2)
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda n: runner.run(list(range(n)), [1] * n), [5, 7, 3, 9] * 3))
    assert [len(each) for each in results] == [5, 7, 3, 9] * 3
