"""The protocol of rewards: how near a state is to the end of a task, and how much an action promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from waygraph.agents.search.state_description import StateDescription
from waygraph.agents.search.trajectory import Trajectory
from waygraph.core.schemas import UsageModel


@dataclass(frozen=True, slots=True)
class Judgement:
    """Values between 0 and 1, and what it took to find them.

    Attributes
    ----------
    values
        The values, in the order of what was judged.
    usage
        Usage of model calls; None without any.
    progress
        For each value, how far the task is, in lines for the next judgement; empty: the reward does not say.
    """

    values: tuple[float, ...]
    usage: UsageModel | None = None
    progress: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedAction:
    """An action of unknown outcome.

    Attributes
    ----------
    text
        The action as text; an answer is `stop [ANSWER]`.
    thinking
        Why it was proposed; empty: nobody said.
    view
        The part of the page that it was proposed for; empty: the whole page.
    """

    text: str
    thinking: str = ""
    view: str = ""


class Reward(Protocol):
    """Judges states and actions.

    Attributes
    ----------
    judges_answers
        Whether answers are judged as actions are. If not, an answer has the value of the state that it is given in.
    """

    judges_answers: bool

    async def judge_states(self, trajectory: Trajectory, states: Sequence[StateDescription]) -> Judgement:
        """Return how near states are to the end of a task.

        Parameters
        ----------
        trajectory
            The task, and the way to the state from which these are looked at.
        states
            The states, visited or known from a map.

        Returns
        -------
        Judgement
            One value for each state.

        Raises
        ------
        ModelFailure
            If a model fails.
        """
        ...

    async def judge_actions(
        self, trajectory: Trajectory, state: StateDescription, actions: Sequence[JudgedAction]
    ) -> Judgement:
        """Return how near a state would be to the end of a task after each of several actions of unknown outcome.

        Parameters
        ----------
        trajectory
            The task, and the way to the state from which these are looked at.
        state
            The state before them.
        actions
            The actions.

        Returns
        -------
        Judgement
            One value for each action.

        Raises
        ------
        ModelFailure
            If a model fails.
        """
        ...
