"""The replies of AgentOccam: their sections, in the order in which the model writes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Part = Annotated[str, Field(max_length=20_000)]

_REASON = "Why the action is the best one now."
_ACTION = "One action, exactly as the list of actions writes it."
_HIGHLIGHT = "Ids of the elements of the page that later steps may need, most important first."


class _OccamPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Looked(_OccamPart):
    history_summary: Part = Field(description="What was done under the active plan and what came of it.")
    observation_description: Part = Field(description="What the page shows that matters for the active plan.")


class OccamReply(_Looked):
    """What to do next, and why. Write the fields in this order."""

    reason: Part = Field(description=_REASON)
    action: Part = Field(description=_ACTION)
    observation_highlight: list[Part] = Field(description=_HIGHLIGHT)


class OccamCandidate(_OccamPart):
    """An action that may be done next."""

    reason: Part = Field(description="Why the action may lead to the goal.")
    action: Part = Field(description=_ACTION)


class OccamProposals(_Looked):
    """All actions that are suitable next, for a judge to choose from. Write the fields in this order."""

    actions: Annotated[
        list[OccamCandidate],
        Field(min_length=1, max_length=20, description="All suitable actions, each another one, the best first."),
    ]
    observation_highlight: list[Part] = Field(description=_HIGHLIGHT)


class Assessment(_OccamPart):
    """What an action may bring."""

    action: Annotated[int, Field(description="Number of the action.")]
    value: Part = Field(description="What it brings for the active plan.")
    risk: Part = Field(description="What may go wrong, and whether it can be undone.")
    best_case: Part = Field(description="Its best outcome.")
    worst_case: Part = Field(description="Its worst outcome.")


class Verdict(_OccamPart):
    """The best of several actions. Write the fields in this order."""

    plan_progress: Part = Field(description="How far the active plan has come.")
    assessments: list[Assessment] = Field(description="One for each action.")
    reason: Part = Field(description="Why the chosen action is the best, in one or two sentences.")
    choice: Annotated[int, Field(description="Number of the best action.")]
