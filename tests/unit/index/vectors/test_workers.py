import threading

import pytest
import torch

from waygraph.index.vectors import workers
from waygraph.index.vectors.workers import parallel_map


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1_000])
def test_every_item_is_in_one_run_in_order(count):
    runs = parallel_map(list, range(count))
    assert [item for run in runs for item in run] == list(range(count))
    assert all(runs)


def test_workers_use_one_thread_each_without_changing_the_process_setting():
    before = torch.get_num_threads()
    inside = parallel_map(lambda _: torch.get_num_threads(), range(64))
    assert set(inside) == {1} or workers._cpus() == 1
    assert torch.get_num_threads() == before
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [before]


def test_an_error_in_a_worker_reaches_the_caller():
    def fail(_):
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        parallel_map(fail, range(10))
