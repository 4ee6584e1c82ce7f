"""The protocol between the loop and an agent's own part: what is known before a step, and what is decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, Self, TypeVar

from waygraph.agents.actions.types import DIALOG_ACTIONS
from waygraph.agents.models.chat import ChatMessage, ChatRequest

if TYPE_CHECKING:
    from pydantic import JsonValue

    from waygraph.agents.actions.report import ActionReport
    from waygraph.agents.actions.types import AgentAction
    from waygraph.agents.observation.page_observation import PageObservation
    from waygraph.core.settings import AgentSettings


#: Sampling of AgentOccam and WebNavigator.
TEMPERATURE, TOP_P = 0.5, 0.95

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeciderOptions:
    """How deciders ask, where a comparison or a model needs it otherwise than the papers.

    Attributes
    ----------
    temperature
        Temperature of sampling.
    top_p
        Share of the probability that tokens are sampled from.
    history_steps
        Latest steps that prompts show; None: as many as in the agent's paper.
    planning
        Whether AgentOccam has its plans.
    abridges
        Whether texts of pages leave out what `show` brings back.
    """

    temperature: float = TEMPERATURE
    top_p: float = TOP_P
    history_steps: int | Literal["all"] | None = None
    planning: bool = True
    abridges: bool = True

    @classmethod
    def of(cls, settings: AgentSettings) -> Self:
        """Return what the settings say, and the papers' values elsewhere."""
        return cls(
            TEMPERATURE if settings.model.temperature is None else settings.model.temperature,
            TOP_P if settings.model.top_p is None else settings.model.top_p,
            settings.history_steps,
            settings.planning,
            settings.observation == "abridged",
        )

    def actions(self, names: Collection[str]) -> frozenset[str]:
        """Return an agent's actions, without `show` if texts leave nothing out."""
        return frozenset(names) - (frozenset() if self.abridges else {"show"})

    def request(self, messages: Sequence[ChatMessage]) -> ChatRequest:
        """Return the request for a decision."""
        return ChatRequest(tuple(messages), temperature=self.temperature, top_p=self.top_p)

    def latest(self, steps: Sequence[T], paper: int | Literal["all"]) -> Sequence[T]:
        """Return the steps that a prompt shows, of all steps and the number in the agent's paper."""
        shown = paper if self.history_steps is None else self.history_steps
        return steps if shown == "all" else steps[max(0, len(steps) - shown) :]


@dataclass(frozen=True, slots=True)
class Situation:
    """What an agent decides on.

    Attributes
    ----------
    task
        The task, in plain words.
    observation
        The page.
    steps_left
        Number of actions that are left, the next one included.
    problem
        Why the answer before could not be used, in one sentence; empty: it could.
    screenshot
        PNG of the window; None: the model gets no images.
    tips
        What the person who runs the task says about its sites; empty: nothing.
    """

    task: str
    observation: PageObservation
    steps_left: int
    problem: str = ""
    screenshot: bytes | None = None
    tips: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a model decided.

    Attributes
    ----------
    action
        The action in the bracket grammar, as the model wrote it.
    thinking
        Why, in the model's words.
    details
        What else the record of the step keeps.
    """

    action: str
    thinking: str
    details: Mapping[str, JsonValue] = field(default_factory=dict)


def available(allowed: Collection[str], observation: PageObservation) -> Collection[str]:
    """Return the actions that an agent has on what it sees: while a dialog is open, those that answer it.

    Parameters
    ----------
    allowed
        Names of the agent's actions.
    observation
        What it sees.

    Returns
    -------
    Collection of str
        Names of actions.
    """
    if observation.dialog is None:
        return allowed
    return {name for name in DIALOG_ACTIONS if name in allowed or name in {"accept", "dismiss"}}


class Decider(Protocol):
    """The part of an agent that asks the model and remembers."""

    def allowed(self, situation: Situation) -> Collection[str]:
        """Return the names of the actions that the agent has, besides those that answer a dialog (see `available`)."""
        ...

    async def decide(self, situation: Situation) -> Decision:
        """Ask the model for the next action.

        Parameters
        ----------
        situation
            What is known.

        Returns
        -------
        Decision
            The decision; its action is not checked yet.

        Raises
        ------
        ModelFailure
            If there is no usable reply.
        """
        ...

    def check(self, action: AgentAction) -> None:
        """Raise `ActionSyntaxError` if the agent's own rules forbid an action; its message is for the model."""
        ...

    def page_action(self, action: AgentAction) -> AgentAction:
        """Return what is performed for an action: mostly the action itself; for `prune` the return to a page."""
        ...

    def remember(
        self, decision: Decision, action: AgentAction, report: ActionReport, observation: PageObservation
    ) -> None:
        """Remember an action, what came of it, and the observation that it was decided on."""
        ...
