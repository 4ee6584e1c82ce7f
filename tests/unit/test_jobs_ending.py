"""When does a call of a run end, and who is told what?"""

import asyncio

import pytest

from pipeline.jobs.run.budget import Budget
from pipeline.jobs.run.ending import see_to_end
from waygraph.settings import JobSettings


class Call:
    """A call whose work ends when it is told one of the words in `ends_on`, and what it was told."""

    def __init__(self, *ends_on: str, spent: bool = False, interrupted_on: str = "") -> None:
        self.told: list[str] = []
        self.stop = asyncio.Event()
        self._ends_on, self._interrupted_on = ends_on, interrupted_on
        self._end = asyncio.Event()
        self._budget = Budget(JobSettings(max_total_states=1))
        if spent:
            self._budget.tell("a.example", 1, resumed=False)
        self.tell("begin")

    def tell(self, word: str) -> None:
        self.told.append(word)
        if word in self._ends_on:
            self._end.set()
        if word == self._interrupted_on:
            self.stop.set()

    async def run(self) -> str:
        async def work() -> None:
            await self._end.wait()

        task = asyncio.create_task(work())
        await see_to_end(
            task,
            stop=self.stop,
            budget=self._budget,
            begin_stop=self.tell,
            cut_short=lambda: self.tell("cut short"),
            out_of_time=lambda: self.tell("out of time"),
            order_seconds=0.01,
            grace_seconds=0.01,
        )
        return "cancelled" if task.cancelled() else "done"


SPENT = "max_total_states"


@pytest.mark.parametrize(
    ("how", "told", "end"),
    [
        ({"ends_on": ["begin"]}, [], "done"),
        ({"interrupted_on": "begin"}, ["signal"], "cancelled"),
        ({"interrupted_on": "begin", "ends_on": ["signal"]}, ["signal"], "done"),
        ({"spent": True, "ends_on": [SPENT]}, [SPENT], "done"),
        ({"spent": True, "ends_on": ["cut short"]}, [SPENT, "cut short"], "done"),
        ({"spent": True}, [SPENT, "cut short", "out of time"], "cancelled"),
        ({"spent": True, "interrupted_on": SPENT}, [SPENT, "signal"], "cancelled"),
        ({"spent": True, "interrupted_on": "cut short", "ends_on": ["signal"]}, [SPENT, "cut short", "signal"], "done"),
    ],
)
def test_a_call_ends_with_its_work_or_in_order(how, told, end):
    async def see() -> tuple[list[str], str]:
        call = Call(*how.get("ends_on", ()), **{name: value for name, value in how.items() if name != "ends_on"})
        ended = await call.run()
        return call.told[1:], ended

    assert asyncio.run(see()) == (told, end)


def test_work_that_fails_ends_the_call_and_keeps_its_error():
    async def see() -> None:
        async def fail() -> None:
            raise ValueError("display gone")

        task = asyncio.create_task(fail())
        await see_to_end(
            task,
            stop=asyncio.Event(),
            budget=Budget(JobSettings()),
            begin_stop=pytest.fail,
            cut_short=pytest.fail,
            out_of_time=pytest.fail,
            order_seconds=0,
            grace_seconds=0,
        )
        task.result()

    with pytest.raises(ValueError, match="display gone"):
        asyncio.run(see())
