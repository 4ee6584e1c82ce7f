"""A process that writes a journal and is killed; see `test_journal.py`."""

import asyncio
import os
import sys
from contextlib import closing
from pathlib import Path

from tests.unit.pipeline.explore.checkpoint.test_journal import TERMS, candidate, items, look, outcome, row
from waygraph.index.graph import Edge
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.journal_records import Checkpoint
from waygraph.pipeline.explore.records.state import State

LEVELS, WIDTH, WORKERS = 3, 200, 4


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def explore(folder: Path) -> None:
    say("begun")
    with closing(Journal.open(folder / "run.journal", TERMS)) as journal:
        last = journal.last()
        if last is None:
            await journal.add_snapshot(look(0).id, look(0))
            await journal.begin_round(0, items(WIDTH), Checkpoint([row(0)]))
            depth, known = 0, {}
        else:
            depth, known = last.round, dict(last.outcomes)
            expected = [row(i) for i in range(1 + depth * WIDTH)]
            if list(last.states) != expected or any(known[i] != outcome(i) for i in known):
                say(f"problem {depth} {len(last.states)}")
        say("opened")
        while depth < LEVELS:
            todo = iter([i for i in range(WIDTH) if i not in known])

            async def work(depth=depth, todo=todo):
                for i in todo:
                    seen = look(1 + depth * WIDTH + i)
                    await journal.add_snapshot(seen.id, seen)
                    await journal.record(depth, i, outcome(i))
                    say(f"recorded {depth} {i}")

            await asyncio.gather(*(work() for _ in range(WORKERS)))
            found: list[State] = [row(1 + depth * WIDTH + i) for i in range(WIDTH)]
            edges = [Edge(row(0).id, state.id, candidate(0).action) for state in found]
            depth, known = depth + 1, {}
            await journal.begin_round(depth, items(WIDTH) if depth < LEVELS else [], Checkpoint(found, edges))
            say("level")


def serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            say(str(os.getpid()))
            try:
                asyncio.run(explore(Path(line.strip())))
            except BaseException as error:  # noqa: BLE001 - whatever it was, it must be seen
                say(f"problem {error!r}")
            os._exit(0)
        os.waitpid(pid, 0)
        say("over")
