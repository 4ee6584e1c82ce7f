"""The reply of WebNavigator's agent: its sections, in the order in which the model writes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Part = Annotated[str, Field(max_length=20_000)]


class WebNavigatorReply(BaseModel):
    """What to do next, and why. Write the fields in this order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objective: Part = Field(description="The task, copied word for word.")
    constraints: list[Part] = Field(
        description="What the task demands: times, quantities, names, logic, the form of the answer."
    )
    history_summary: Part = Field(description="What the steps achieved, in one or two sentences.")
    observation_description: Part = Field(description="What the page shows that matters, without conclusions.")
    mode: Literal["exploration", "action"] = Field(description="exploration: another page is needed; else action.")
    reason: Part = Field(description="What is needed, and why this action, briefly; later steps show it.")
    action: Part = Field(description="One of the listed actions.")
    observation_highlight: list[Part] = Field(description="Ids of elements that matter.")
