"""Benchmark of the journal: cost of a durable exploration, and time to resume it.

    python -m bench.journal [--states 10000] [--done 1000000] [--save]

Explores a generated site of 10,000 states on a real disk: per state one snapshot (600 exposed elements, 60 candidates,
150 texts), one capture, three outcomes, each acknowledged by the disk; 30,000 edges; 20,000 pending items at the end.
Then the process drops its state, the file is evicted from the page cache, and the run is resumed. A second journal
shows what one outcome costs when a million items are done. `--save` also writes bench/results/journal.json.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import platform
import random
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import psutil

from bench.result_files import RESULTS, quantiles_ms, run_info, write_result
from waygraph.index.graph import Action, Box, Edge, Segment
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.journal_records import Checkpoint
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load, State

TARGET_RESUME_S = 5.0
ITEMS_PER_STATE = 3
PENDING = 20_000
TERMS = {"start_url": "http://site.test/"}
WORDS = ("account", "basket", "cancel", "compare", "delivery", "filter", "help", "language", "login", "menu", "offers")


def node_id(i: int) -> str:
    return hashlib.md5(str(i).encode()).hexdigest()


def candidate(i: int) -> Candidate:
    words = f"{WORDS[i % len(WORDS)]} {WORDS[i // 7 % len(WORDS)]} {i}"
    action = Action(
        "click",
        role="link",
        name=words,
        nth=i % 3,
        xpath=f"/html[1]/body[1]/div[2]/main[1]/section[{i % 9}]/ul[1]/li[{i % 50}]/a[1]",
        target=f"http://site.test/{'/'.join(words.split())}?page={i % 40}",
    )
    return Candidate(action, "a", disabled=False, submits="", download=False, box=Box(i % 900, i % 4_000, 120, 24))


def look(i: int) -> Snapshot:
    rng = random.Random(i)
    shared = [node_id(-k) for k in range(450)]
    return Snapshot(
        id=node_id(i),
        url=f"http://site.test/page/{i}",
        raw_url=f"http://site.test/page/{i}",
        title=f"Page {i}",
        content_type="text/html",
        status=200,
        structure=tuple(sorted([*shared, *(f"{rng.getrandbits(128):032x}" for _ in range(150))])),
        candidates=tuple(candidate(rng.randrange(100_000)) for _ in range(60)),
        segments=tuple(Segment(" ".join(rng.choices(WORDS, k=8)), "text", Box(0, 20 * k, 600, 18)) for k in range(150)),
        capped=False,
        opened=0,
        storage={"local": {"session": node_id(1)}},
    )


def outcome(i: int) -> ActionOutcome:
    return ActionOutcome(node_id=f"{i:032x}", ms=120.0)


def items(count: int) -> list[tuple[str, Candidate]]:
    return [(node_id(i // ITEMS_PER_STATE), candidate(i)) for i in range(count)]


@contextmanager
def timed(into: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    into[name] = round(time.perf_counter() - began, 3)


async def each(calls: Sequence[Callable[[], Awaitable[None]]], workers: int) -> list[float]:
    """Milliseconds of each call, made by so many workers at once."""
    queue, took = iter(calls), []

    async def work() -> None:
        for call in queue:
            began = time.perf_counter()
            await call()
            took.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(work() for _ in range(workers)))
    return took


async def explore(path: Path, states: int) -> dict[str, object]:
    """Fill a journal as an exploration would: the committed part by checkpoints, and a level under way."""
    edges = [Edge(node_id(i), node_id(i % states), candidate(i).action, 100.0) for i in range(states * ITEMS_PER_STATE)]
    rows = [
        State(node_id(i), f"http://site.test/page/{i}", f"Page {i}", node_id(i), i % 4, node_id(0))
        for i in range(states)
    ]
    looks = [look(i) for i in range(min(states, 500))]
    seconds: dict[str, float] = {}
    with closing(Journal.open(path, TERMS)) as journal:
        cpu = time.process_time()
        # The looks of a whole site do not fit into memory at once; the rest is made on the way.
        added = await each([partial(journal.add_snapshot, s.id, s) for s in looks], 1)
        cpu_look = (time.process_time() - cpu) * 1000 / len(looks)
        for first in range(len(looks), states, 500):
            more = [look(i) for i in range(first, min(states, first + 500))]
            added += await each([partial(journal.add_snapshot, s.id, s) for s in more], 4)
        for i in range(0, states, 100):
            await asyncio.gather(
                *(journal.record_capture(node_id(k), (node_id(k) * 2,) * 3) for k in range(i, min(states, i + 100))),
                *(journal.record_load(f"http://site.test/page/{k}", Load(node_id(k), 80.0)) for k in range(i, i + 100)),
            )
        with timed(seconds, "barrier_s"):
            memories = {"identity": {node_id(i): node_id(i + 1) for i in range(states // 5)}}
            await journal.begin_round(3, items(states + PENDING), Checkpoint(rows, edges, memories=memories))
        cpu = time.process_time()
        alone = await each([partial(journal.record, 3, i, outcome(i)) for i in range(states // 2)], 1)
        cpu_record = (time.process_time() - cpu) * 1000 / len(alone)
        together = await each([partial(journal.record, 3, i, outcome(i)) for i in range(states // 2, states)], 8)
    return {
        "add_look": quantiles_ms(added) | {"cpu_ms": round(cpu_look, 3)},
        "record_1_worker": quantiles_ms(alone) | {"cpu_ms": round(cpu_record, 3)},
        "record_8_workers": quantiles_ms(together),
        **seconds,
    }


def resume(path: Path, states: int) -> dict[str, object]:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    seconds: dict[str, float] = {}
    before = psutil.Process().memory_info().rss
    with timed(seconds, "resume_s"):
        journal = Journal.open(path, TERMS)
        last = journal.last()
        assert last is not None
    grown = psutil.Process().memory_info().rss - before
    with closing(journal):
        with timed(seconds, "decode_all_items_s"):
            assert len(list(last.items)) == states + PENDING
        assert (len(last.states), len(last.outcomes), len(last.snapshot_keys)) == (states, states, states)
        chance = random.Random(5)
        took = []
        for _ in range(300):
            began = time.perf_counter()
            journal.snapshot(node_id(chance.randrange(states)))
            took.append((time.perf_counter() - began) * 1000)
        with timed(seconds, "census_s"):
            assert Counter(fate.status for fate in journal.fates())["pending"] == PENDING
    return {**seconds, "look": quantiles_ms(took), "resumed_mb": round(grown / 2**20)}


async def one_by_one(journal: Journal, level: int) -> dict[str, float]:
    cpu = time.process_time()
    took = await each([partial(journal.record, level, i, outcome(i)) for i in range(1_000)], 1)
    return quantiles_ms(took) | {"cpu_ms": round((time.process_time() - cpu) * 1000 / len(took), 3)}


async def among_many(folder: Path, done: int) -> dict[str, object]:
    """One outcome in a fresh journal, and among a million done items."""
    result: dict[str, object] = {}
    work = items(1_000)
    with closing(Journal.open(folder / "many.journal", TERMS)) as journal:
        await journal.begin_round(0, work, Checkpoint())
        result["record_among_1000"] = await one_by_one(journal, 0)
        chunk = items(min(100_000, done))
        for level in range(1, done // len(chunk) + 1):
            await journal.begin_round(level, chunk, Checkpoint())
        await journal.begin_round(level + 1, work, Checkpoint())
        result[f"record_among_{done}"] = await one_by_one(journal, level + 1)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--done", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    parser.add_argument("--save", action="store_true", help="write bench/results/journal.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        path = Path(name) / "run.journal"
        measured = asyncio.run(explore(path, arguments.states))
        measured["bytes_per_state"] = path.stat().st_size // arguments.states
        # A process of its own: what it needs of memory is its own, too.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            measured |= fresh.submit(resume, path, arguments.states).result()
        measured |= asyncio.run(among_many(Path(name), arguments.done))
    for key, value in measured.items():
        print(f"{key:26} {value}")
    print(f"resume {measured['resume_s']} s, target {TARGET_RESUME_S} s")
    if arguments.save:
        result = {
            **run_info(),
            "python": platform.python_version(),
            "load_average": round(os.getloadavg()[0], 1),
            "states": arguments.states,
            "edges": arguments.states * ITEMS_PER_STATE,
            "pending": PENDING,
            "done": arguments.done,
            **measured,
        }
        write_result(RESULTS / "journal.json", result)


if __name__ == "__main__":
    main()
