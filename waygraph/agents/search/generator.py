"""The protocol of candidate generators: from an observation, the history and the task to actions worth a try."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search.search_actions import SearchAction
from waygraph.core.schemas import UsageModel
from waygraph.core.urls import WITH_FRAGMENT, normalize_url


@dataclass(frozen=True, slots=True)
class PastAction:
    """An action on the way from the root of the search to a state: the action as text, and where it led."""

    action: str
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What generators are given.

    Attributes
    ----------
    task
        The task.
    observation
        The page.
    history
        The actions that led to it, the latest last.
    limit
        Number of actions that are wanted besides an answer.
    is_start
        Whether the search begins in this state.
    mapped
        Whether there is a map, so that `navigate` works.
    seen
        Normalised URLs that were visited, with their fragments.
    problems
        What was wrong with the proposals before, if all of them were; each is one sentence.
    """

    task: str
    observation: PageObservation
    history: tuple[PastAction, ...] = ()
    limit: int = 3
    is_start: bool = False
    mapped: bool = False
    seen: frozenset[str] = field(default_factory=frozenset)
    problems: tuple[str, ...] = ()

    def has_seen(self, url: str) -> bool:
        """Whether a page was visited."""
        return normalize_url(url, WITH_FRAGMENT) in self.seen


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """A candidate action.

    Attributes
    ----------
    action
        The action.
    score
        How much it promises, between 0 and 1; None: the reward is to judge it. The value of a known outcome, and of the
        state for an answer, replaces it.
    thinking
        Why, in words.
    """

    action: SearchAction
    score: float | None = None
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Proposals:
    """Candidate actions, and what it took to find them.

    Attributes
    ----------
    actions
        The actions, best first.
    problems
        What a model wrote that is no action; each is one sentence.
    usage
        Usage of model calls; None without any.
    """

    actions: tuple[ProposedAction, ...]
    problems: tuple[str, ...] = ()
    usage: UsageModel | None = None


class CandidateGenerator(Protocol):
    """Proposes actions in a state. Several generators of a search are its contexts.

    Attributes
    ----------
    name
        Name in the records of the search.
    """

    name: str

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions.

        Parameters
        ----------
        request
            The state and the task.

        Returns
        -------
        Proposals
            The actions. They may not fit the page: the search validates them.

        Raises
        ------
        ModelFailure
            If a model fails.
        """
        ...
