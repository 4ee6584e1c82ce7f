"""What every agent is and leaves: a protocol, and the record of its run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from waygraph.core.schemas import UsageModel

if TYPE_CHECKING:
    from pydantic import JsonValue

    from waygraph.agents.observation.page_observation import PageObservation


class AttemptEnd(StrEnum):
    """Why an agent stopped.

    `ANSWERED`: it says that it is done. `EXHAUSTED`: nothing is left to try. `STEP_LIMIT`: its actions are used up.
    `BUDGET`: its tokens, money or seconds are. `FAILED`: the model's answers could not be used. `UNAVAILABLE`: the
    model gave no answer, which is not the agent's doing.
    """

    ANSWERED = "answered"
    EXHAUSTED = "exhausted"
    STEP_LIMIT = "step_limit"
    BUDGET = "budget"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class AgentStep:
    """An action of an agent, and what came of it.

    Attributes
    ----------
    state
        Node id of the state in which it was done.
    url
        URL of that state.
    action
        The action as text; empty if a model's answer was none.
    status
        Status of the action's report (`waygraph.agents.actions.report.ActionStatus`), or `unparsed`: the model's
        answer was no action.
    message
        What happened, as the agent was told.
    thinking
        Why, in the model's words; empty for agents without one.
    usage
        What the model calls of this step took; None without any.
    details
        What else this kind of agent records, as JSON: scores, plans, candidates.
    """

    state: str
    url: str
    action: str
    status: str
    message: str
    thinking: str = ""
    usage: UsageModel | None = None
    details: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentRun:
    """A run of an agent.

    Attributes
    ----------
    task
        The task, in plain words.
    end
        Why it ended.
    answer
        The answer; empty: there is none.
    url
        Where it ended.
    state
        Node id of the state where it ended.
    steps
        All actions.
    problem
        What failed, if `end` is `FAILED`, `BUDGET` or `UNAVAILABLE`; empty otherwise.
    """

    task: str
    end: AttemptEnd
    answer: str
    url: str
    state: str
    steps: tuple[AgentStep, ...]
    problem: str = ""


#: Called after every step, with the observation that the step was decided on.
StepListener = Callable[[AgentStep, "PageObservation"], Awaitable[None]]


async def ignore_step(step: AgentStep, observation: PageObservation) -> None:
    """Do nothing with a step."""


class Agent(Protocol):
    """An agent that does tasks in a browser session that it was made with."""

    async def run(self, task: str, on_step: StepListener = ignore_step) -> AgentRun:
        """Do a task.

        Parameters
        ----------
        task
            The task, in plain words.
        on_step
            Called after every step.

        Returns
        -------
        AgentRun
            What it did and how it ended. Failures of models and pages are a part of it, not exceptions.

        Raises
        ------
        BrowserFailure
            If the browser or its context is gone.
        """
        ...
