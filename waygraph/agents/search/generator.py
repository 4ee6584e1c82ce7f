"""The protocol of candidate generators: from an observation, the history and the task to actions worth a try."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search.search_actions import SearchAction
from waygraph.agents.search.trajectory import Trajectory
from waygraph.core.schemas import UsageModel
from waygraph.core.urls import WITH_FRAGMENT, normalize_url


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What generators are given.

    Attributes
    ----------
    trajectory
        The task, the actions that led to the page, and the notes so far.
    observation
        The page.
    limit
        Number of actions that are wanted besides an answer.
    is_start
        Whether the search begins in this state.
    sites
        Keys of the sites that have maps, for `navigate`.
    seen
        Normalised URLs that were visited, with their fragments.
    problems
        What was wrong with the proposals before, if all of them were; each is one sentence.
    """

    trajectory: Trajectory
    observation: PageObservation
    limit: int = 3
    is_start: bool = False
    sites: tuple[str, ...] = ()
    seen: frozenset[str] = field(default_factory=frozenset)
    problems: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """The task, in plain words."""
        return self.trajectory.task

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
        How much it promises, between 0 and 1; None: the reward is to judge it. The value of a known outcome replaces
        it, and that of an answer.
    thinking
        Why, in words.
    view
        The part of the page that it was proposed for; empty: the whole page.
    """

    action: SearchAction
    score: float | None = None
    thinking: str = ""
    view: str = ""


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
    summary
        What the page shows, as far as the task is concerned; empty: nobody said.
    notes
        Facts of the page that the task needs later.
    """

    actions: tuple[ProposedAction, ...]
    problems: tuple[str, ...] = ()
    usage: UsageModel | None = None
    summary: str = ""
    notes: tuple[str, ...] = ()


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
