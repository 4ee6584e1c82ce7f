"""Worker threads that share one search among the CPUs, with a single join at its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def parallel_map(function: Callable[[Sequence[T]], R], items: Sequence[T]) -> list[R]:
    """Call `function` for runs of `items`, one run per CPU, each in a thread that uses no further threads.

    torch divides every single operation among its threads instead: hundreds of times in one search all threads then
    wait for the slowest, and on a busy machine one of them is always descheduled. Moreover, its number of threads is
    one setting of the whole process, which the query encoder sets to 1.

    Parameters
    ----------
    function
        Called with a run of consecutive items.
    items
        The items.

    Returns
    -------
    list
        One result per run, in the order of the items.
    """
    count = min(_cpus(), len(items))
    if count <= 1:
        return [function(items)] if items else []
    ends = [len(items) * part // count for part in range(count + 1)]
    return list(_pool().map(function, [items[start:end] for start, end in pairwise(ends)]))


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


@cache
def _pool() -> ThreadPoolExecutor:
    """Start one single-threaded worker per CPU; the barrier makes every thread of the pool run the set-up once."""
    count = _cpus()
    barrier = threading.Barrier(count)

    def use_one_thread(_: int) -> None:
        torch.get_num_threads()  # a thread copies the process's setting on its first use, and not after this
        torch.set_num_threads(1)  # for this thread, and for threads started later
        barrier.wait()

    process_setting = torch.get_num_threads()
    pool = ThreadPoolExecutor(count, thread_name_prefix="maxsim")
    list(pool.map(use_one_thread, range(count)))
    torch.set_num_threads(process_setting)
    return pool
