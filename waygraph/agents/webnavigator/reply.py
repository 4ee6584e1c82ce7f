"""The reply of WebNavigator's agent: its sections, in the order in which the model writes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Part = Annotated[str, Field(max_length=20_000)]


class _ReplyPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskConstraints(_ReplyPart):
    """What the task demands, by kind; each list may be empty."""

    time: list[Part] = Field(description="Dates, periods.")
    quantity: list[Part] = Field(description="Numbers, limits.")
    entity: list[Part] = Field(description="Names.")
    logic: list[Part] = Field(description="Conditions, orders, comparisons.")
    other: list[Part] = Field(description="The rest, such as the form of the answer.")


class WebNavigatorReply(_ReplyPart):
    """What to do next, and why. Write the fields in this order."""

    objective: Part = Field(description="The task, copied word for word.")
    constraints: TaskConstraints
    history_summary: Part = Field(description="What the numbered steps achieved, in one or two sentences.")
    observation_description: Part = Field(description="What the page shows that matters, without conclusions.")
    mode: Literal["exploration", "action"] = Field(
        description="exploration: another page is needed; action: the task goes on on this one."
    )
    reason: Part = Field(description="Why this action, briefly. With navigate: what the page is needed for.")
    action: Part = Field(description="One action, exactly as the list of actions writes it.")
    observation_highlight: list[Part] = Field(description="Ids of elements that matter.")
