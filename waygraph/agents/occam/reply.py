"""The reply of AgentOccam: its sections, in the order in which the model writes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Part = Annotated[str, Field(max_length=20_000)]


class OccamReply(BaseModel):
    """What to do next, and why. Write the fields in this order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    history_summary: Part = Field(description="What was done under the active plan and what came of it.")
    observation_description: Part = Field(description="What the page shows that matters for the active plan.")
    reason: Part = Field(description="Why the action is the best one now.")
    action: Part = Field(description="One action, exactly as the list of actions writes it.")
    observation_highlight: list[Part] = Field(
        description="Ids of the elements of the page that later steps may need, most important first."
    )


class Verdict(BaseModel):
    """The best of several candidate actions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: Part = Field(description="Why, in one or two sentences.")
    choice: Annotated[int, Field(description="Number of the best candidate.")]
