"""Budgets of tokens and money: of one task, within that of its run."""

from __future__ import annotations

from waygraph.agents.models.chat import ChatModel, ChatReply, ChatRequest, add_usage, no_usage
from waygraph.core.errors import ModelBudgetSpent
from waygraph.core.schemas import UsageModel


class ModelBudget:
    """What calls may take, and what they have taken.

    A call is allowed while anything is left, since its price is known only afterwards: calls that run at the same time
    may exceed the budget by what they take.

    Parameters
    ----------
    name
        What the budget is for, such as `task 12`, for messages.
    max_tokens
        Limit of input and output tokens; 0: no limit.
    max_cost
        Limit of the price; 0: no limit.
    parent
        Budget that this one is a part of.
    """

    def __init__(
        self, name: str, *, max_tokens: int = 0, max_cost: float = 0.0, parent: ModelBudget | None = None
    ) -> None:
        self._name = name
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._parent = parent
        self.spent: UsageModel = no_usage()

    @property
    def is_spent(self) -> bool:
        """Whether this budget, or one that it is a part of, is spent."""
        try:
            self.check()
        except ModelBudgetSpent:
            return True
        return False

    @property
    def parent_is_spent(self) -> bool:
        """Whether the budget that this one is a part of is spent."""
        return self._parent is not None and self._parent.is_spent

    def left(self) -> ModelBudget:
        """Return a budget of what is left of this one, for another process."""
        tokens = self.spent.input_tokens + self.spent.output_tokens
        return ModelBudget(
            self._name,
            max_tokens=max(self._max_tokens - tokens, 1) if self._max_tokens else 0,
            max_cost=max(self._max_cost - (self.spent.cost or 0.0), 1e-9) if self._max_cost else 0.0,
        )

    def check(self) -> None:
        """Raise `ModelBudgetSpent` if this budget or one that it is a part of is spent."""
        tokens = self.spent.input_tokens + self.spent.output_tokens
        if self._max_tokens and tokens >= self._max_tokens:
            raise ModelBudgetSpent(f"The budget of {self._name} is spent: {tokens:,} of {self._max_tokens:,} tokens.")
        cost = self.spent.cost or 0.0
        if self._max_cost and cost >= self._max_cost:
            raise ModelBudgetSpent(f"The budget of {self._name} is spent: {cost:.4f} of {self._max_cost:.4f}.")
        if self._parent is not None:
            self._parent.check()

    def charge(self, usage: UsageModel) -> None:
        """Add what a call took, to this budget and to those that it is a part of."""
        self.spent = add_usage(self.spent, usage)
        if self._parent is not None:
            self._parent.charge(usage)


class BudgetedModel:
    """A model whose calls are charged to a budget, and refused when it is spent.

    Parameters
    ----------
    model
        The model.
    budget
        The budget.
    """

    def __init__(self, model: ChatModel, budget: ModelBudget) -> None:
        self._model = model
        self._budget = budget

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request; see `ChatModel.complete`."""
        self._budget.check()
        reply = await self._model.complete(request)
        self._budget.charge(reply.usage)
        return reply
