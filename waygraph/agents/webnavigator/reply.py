"""The reply of WebNavigator's agent: its sections, in the order in which the model writes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Part = Annotated[str, Field(max_length=20_000)]


class _ReplyPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskConstraints(_ReplyPart):
    """What the task demands, by kind; each list may be empty."""

    time: list[Part] = Field(description="Dates and periods.")
    quantity: list[Part] = Field(description="Numbers, limits and counts.")
    entity: list[Part] = Field(description="Names of people, products, places and things.")
    logic: list[Part] = Field(description="Conditions, orders and comparisons.")
    other: list[Part] = Field(description="Everything else, such as the form of the answer.")


class WebNavigatorReply(_ReplyPart):
    """What to do next, and why. Write the fields in this order."""

    objective: Part = Field(description="The task, in your own words.")
    constraints: TaskConstraints
    history_summary: Part = Field(description="What was done so far and what came of it.")
    observation_description: Part = Field(description="What the page shows that matters for the task.")
    mode: Literal["exploration", "action"] = Field(
        description="exploration: the page that is needed is another one; action: the task goes on on this page."
    )
    reason: Part = Field(description="Why the action is the best one now. With navigate: what the page is needed for.")
    action: Part = Field(description="One action, exactly as the list of actions writes it.")
    observation_highlight: list[Part] = Field(description="Ids of the elements of the page that matter for the task.")
