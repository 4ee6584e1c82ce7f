"""Budgets end an invocation of a run."""

import asyncio

from waygraph.core.settings import JobSettings
from waygraph.pipeline.jobs.run.budget import RunBudget


async def is_spent(budget):
    task = asyncio.create_task(budget.until_spent())
    for _ in range(10):
        await asyncio.sleep(0)
    spent = task.done() and task.result()
    task.cancel()
    return spent


async def test_states_of_all_sites_count_together():
    budget = RunBudget(JobSettings(max_total_states=10))
    budget.update("a", 3, resumed=False)
    budget.update("b", 6, resumed=False)
    budget.update("a", 2, resumed=False)  # it was started again: these states were counted already
    assert not await is_spent(budget)
    budget.update("a", 4, resumed=False)
    assert budget.states == 10
    assert await budget.until_spent() == "max_total_states"


async def test_states_of_a_resumed_exploration_do_not_count():
    budget = RunBudget(JobSettings(max_total_states=10))
    budget.update("a", 500, resumed=True)
    budget.update("a", 509, resumed=True)
    assert budget.states == 9
    budget.update("a", 510, resumed=True)
    assert await budget.until_spent() == "max_total_states"


async def test_time_budget_ends_the_invocation_and_no_limit_never_does():
    assert await RunBudget(JobSettings(max_total_seconds=0.01)).until_spent() == "max_total_seconds"
    assert not await is_spent(RunBudget(JobSettings()))
