"""How does one search use several CPUs without its threads waiting for each other? A few workers, one join."""

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


def spread(function: Callable[[Sequence[T]], R], items: Sequence[T]) -> list[R]:
    """Call `function` for runs of `items`, one run per CPU, each in a thread that uses no further ones; in order.

    torch shares out every single operation instead: hundreds of times in one search all threads then wait for the
    slowest, and on a busy machine one of them is always not running. Its number of threads is also one setting of the
    whole process, which the encoder of questions sets to 1.
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
    count = _cpus()
    everybody = threading.Barrier(count)

    def alone(_: int) -> None:
        torch.get_num_threads()  # a thread takes over the process's setting when it first needs one; not after this
        torch.set_num_threads(1)  # of this thread, and of threads to come
        everybody.wait()

    others = torch.get_num_threads()
    pool = ThreadPoolExecutor(count, thread_name_prefix="maxsim")
    list(pool.map(alone, range(count)))
    torch.set_num_threads(others)
    return pool
