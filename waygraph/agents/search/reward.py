"""The protocol of rewards: how near a state is to the end of a task, and how much an action promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from waygraph.agents.search.state_description import StateDescription
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
    """

    values: tuple[float, ...]
    usage: UsageModel | None = None


class Reward(Protocol):
    """Judges states and actions."""

    async def judge_states(self, task: str, states: Sequence[StateDescription]) -> Judgement:
        """Return how near states are to the end of a task.

        Parameters
        ----------
        task
            The task.
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

    async def judge_actions(self, task: str, state: StateDescription, actions: Sequence[str]) -> Judgement:
        """Return how near a state would be to the end of a task after each of several actions of unknown outcome.

        Parameters
        ----------
        task
            The task.
        state
            The state before them.
        actions
            The actions as text.

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
