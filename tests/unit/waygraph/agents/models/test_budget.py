"""Budgets of tasks are parts of the budget of their run."""

import pytest

from waygraph.agents.models.budget import ModelBudget
from waygraph.core.errors import ModelBudgetSpent
from waygraph.core.schemas import UsageModel


def usage(tokens, cost=None):
    return UsageModel(model="m", calls=1, input_tokens=tokens, output_tokens=0, seconds=0.0, cost=cost)


def test_a_budget_without_limits_is_never_spent():
    budget = ModelBudget("the run")
    budget.charge(usage(10**9, 10**6))
    assert not budget.is_spent


def test_what_a_task_takes_is_taken_from_its_run():
    run = ModelBudget("the run", max_tokens=100)
    first, second = ModelBudget("task 1", max_tokens=80, parent=run), ModelBudget("task 2", parent=run)
    first.charge(usage(80))
    assert first.is_spent
    assert not first.parent_is_spent
    assert not second.is_spent
    second.charge(usage(20))
    assert second.is_spent
    assert second.parent_is_spent
    with pytest.raises(ModelBudgetSpent, match="the run is spent: 100 of 100 tokens"):
        second.check()


def test_what_is_left_is_a_budget_of_its_own():
    run = ModelBudget("the run", max_tokens=100, max_cost=1.0)
    run.charge(usage(60, 0.25))
    left = run.left()
    left.charge(usage(39, 0.5))
    assert not left.is_spent
    left.charge(usage(1))
    assert left.is_spent
    assert not run.is_spent
    run.charge(usage(500, 5.0))
    spent = run.left()
    spent.charge(usage(1, 0.01))
    assert spent.is_spent
