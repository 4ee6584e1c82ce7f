"""Creation of chat models from settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.chat import ChatModel
from waygraph.agents.models.endpoint import EndpointModel
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import AgentSettings, ChatSettings


@asynccontextmanager
async def open_model(settings: ChatSettings) -> AsyncIterator[ChatModel]:
    """Open the configured model; its connections are closed at the end of the block.

    Parameters
    ----------
    settings
        The model.

    Yields
    ------
    ChatModel
        The model.

    Raises
    ------
    InvalidInput
        If no model is configured.
    """
    if not settings.model:
        raise InvalidInput("No chat model is configured.", hint="Set WAYGRAPH_AGENTS__MODEL__MODEL and __BASE_URL.")
    model = EndpointModel(settings)
    try:
        yield model
    finally:
        await model.close()


def run_budget(settings: AgentSettings) -> ModelBudget:
    """Return the budget of a run.

    Parameters
    ----------
    settings
        Limits of the run, and prices of the model.

    Returns
    -------
    ModelBudget
        The budget.

    Raises
    ------
    InvalidInput
        If the price is limited and the model has no prices.
    """
    asked = [each for each in (settings.model, settings.selector) if each is settings.model or each.model]
    has_prices = all(each.input_price or each.output_price for each in asked)
    if (settings.run_cost or settings.task_cost) and not has_prices:
        raise InvalidInput(
            "The price of calls is limited, but a model has no prices.",
            hint="Set WAYGRAPH_AGENTS__MODEL__INPUT_PRICE and __OUTPUT_PRICE, per million tokens; of a selector, too.",
        )
    return ModelBudget("the run", max_tokens=settings.run_tokens, max_cost=settings.run_cost)


def task_budget(settings: AgentSettings, task_id: str, run: ModelBudget) -> ModelBudget:
    """Return the budget of a task, as a part of its run's."""
    return ModelBudget(f"task {task_id}", max_tokens=settings.task_tokens, max_cost=settings.task_cost, parent=run)
