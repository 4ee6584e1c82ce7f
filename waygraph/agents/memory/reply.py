"""The reply of the memory agent: its sections, in the order in which the model writes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Part = Annotated[str, Field(max_length=20_000)]


class MemoryReply(BaseModel):
    """What to do next, and what to remember. Write the fields in this order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thinking: Part = Field(description="What the page shows that matters for the task, and why the action is best now.")
    memory: Part = Field(
        description="Everything that later steps need and no longer see, as it is after this page: what was found, "
        "calculated and done, and what is left. It replaces the memory before."
    )
    action: Part = Field(description="One action, exactly as the list of actions writes it.")
