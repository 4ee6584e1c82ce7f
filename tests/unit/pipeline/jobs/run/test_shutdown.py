"""End of an invocation: which tasks are stopped, in which order, and with which message."""

import asyncio

import pytest

from waygraph.core.settings import JobSettings
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.shutdown import ShutdownSteps, run_until_stopped


class Call:
    """An invocation whose work ends at one of the steps in `ends_on`; records the steps."""

    def __init__(self, *ends_on: str, spent: bool = False, interrupted_on: str = "") -> None:
        self.told: list[str] = []
        self.stop = asyncio.Event()
        self._ends_on, self._interrupted_on = ends_on, interrupted_on
        self._end = asyncio.Event()
        self._budget = RunBudget(JobSettings(max_total_states=1))
        if spent:
            self._budget.update("a.example", 1, resumed=False)
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
        steps = ShutdownSteps(
            stop=self.tell,
            abandon=lambda: self.tell("abandon"),
            cancel=lambda: self.tell("cancel"),
            stop_seconds=0.01,
            grace_seconds=0.01,
        )
        await run_until_stopped(task, interrupted=self.stop, budget=self._budget, steps=steps)
        return "cancelled" if task.cancelled() else "done"


SPENT = "max_total_states"


@pytest.mark.parametrize(
    ("how", "told", "end"),
    [
        ({"ends_on": ["begin"]}, [], "done"),
        ({"interrupted_on": "begin"}, ["signal"], "cancelled"),
        ({"interrupted_on": "begin", "ends_on": ["signal"]}, ["signal"], "done"),
        ({"spent": True, "ends_on": [SPENT]}, [SPENT], "done"),
        ({"spent": True, "ends_on": ["abandon"]}, [SPENT, "abandon"], "done"),
        ({"spent": True}, [SPENT, "abandon", "cancel"], "cancelled"),
        ({"spent": True, "interrupted_on": SPENT}, [SPENT, "signal"], "cancelled"),
        ({"spent": True, "interrupted_on": "abandon", "ends_on": ["signal"]}, [SPENT, "abandon", "signal"], "done"),
    ],
)
def test_invocation_ends_with_its_work_or_by_the_shutdown_steps(how, told, end):
    async def see() -> tuple[list[str], str]:
        call = Call(*how.get("ends_on", ()), **{name: value for name, value in how.items() if name != "ends_on"})
        ended = await call.run()
        return call.told[1:], ended

    assert asyncio.run(see()) == (told, end)


def test_failed_work_ends_the_invocation_with_its_error():
    async def see() -> None:
        async def fail() -> None:
            raise ValueError("display gone")

        task = asyncio.create_task(fail())
        steps = ShutdownSteps(
            stop=pytest.fail, abandon=pytest.fail, cancel=pytest.fail, stop_seconds=0, grace_seconds=0
        )
        await run_until_stopped(task, interrupted=asyncio.Event(), budget=RunBudget(JobSettings()), steps=steps)
        task.result()

    with pytest.raises(ValueError, match="display gone"):
        asyncio.run(see())
