"""The agent of the tree search: what it is given, the file of its search, and how its run ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waygraph.agents.actions.session import AgentSession
from waygraph.agents.run_record import AgentRun, AttemptEnd, StepListener, ignore_step
from waygraph.agents.search.best_first import BestFirstSearch
from waygraph.agents.search.expansion import Expander, ExpansionLimits
from waygraph.agents.search.generator import CandidateGenerator
from waygraph.agents.search.goto_targets import GotoTargets
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.reward import Reward
from waygraph.agents.search.run_of_tree import run_of
from waygraph.agents.search.selection import SearchLimits
from waygraph.agents.search.tree import SearchTree
from waygraph.agents.search.tree_file import TreeFile
from waygraph.agents.search.validation import ActionValidator
from waygraph.core.errors import (
    BrowserFailure,
    CassetteMiss,
    ContextTooLong,
    InvalidInput,
    ModelBudgetSpent,
    ModelRejected,
    ModelUnavailable,
    WaygraphError,
)
from waygraph.sdk.facade import AsyncWaygraph


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How a tree search works.

    Attributes
    ----------
    limits
        Steps, depth, and when an answer is accepted.
    budget
        Number of actions that the frontier keeps when others are added.
    branching
        Number of actions that each generator proposes in a state.
    retries
        Number of times that a generator is asked again if nothing that it proposed is valid.
    sites
        Keys of the sites whose maps are used; empty: no map.
    lookahead_states
        Number of states of the map that are judged around each visited state. Each costs a call of a model reward.
    tree_file
        File that keeps the search, and from which it goes on if it exists; None: it is kept in memory.
    merging
        Whether equal actions of several generators are one.
    speculation
        Whether proposed addresses are loaded beside before they are judged.
    """

    limits: SearchLimits = field(default_factory=SearchLimits)
    budget: int = 4
    branching: int = 3
    retries: int = 2
    sites: tuple[str, ...] = ()
    lookahead_states: int = 40
    tree_file: Path | None = None
    merging: bool = True
    speculation: bool = True


class TreeSearchAgent:
    """Searches best first, and returns to earlier states when others promise more.

    Parameters
    ----------
    session
        The browser session; its page shows where the task begins. Actions that change data are performed only if its
        options allow them, and then after everything safe.
    generators
        Propose actions; each is a context.
    reward
        Judges states and actions.
    options
        Limits, and the map.
    maps
        The maps; None: there are none, whatever the options say.
    """

    def __init__(
        self,
        session: AgentSession,
        generators: Sequence[CandidateGenerator],
        reward: Reward,
        options: SearchOptions | None = None,
        *,
        maps: AsyncWaygraph | None = None,
    ) -> None:
        self._session = session
        self._options = options or SearchOptions()
        self._map = MapLookahead(maps, self._options.sites) if maps is not None and self._options.sites else None
        self._expander = Expander(
            generators,
            reward,
            ActionValidator(session.options),
            GotoTargets(session) if self._options.speculation else None,
            self._map,
            limits=ExpansionLimits(
                self._options.branching,
                self._options.lookahead_states,
                self._options.retries,
                merging=self._options.merging,
            ),
        )

    async def run(self, task: str, on_step: StepListener = ignore_step) -> AgentRun:
        """Do a task, or go on with it if the file of the search exists.

        Parameters
        ----------
        task
            The task, in plain words.
        on_step
            Called after every step; not for the steps of an earlier process.

        Returns
        -------
        AgentRun
            What was done, steps of earlier processes included. The details of a step are the numbers of its node and
            its candidate in the tree, its score, the rule that selected it, what was tried to return to its state, the
            state that the map expected, requests that changed data, and the actions that were added after it.

        Raises
        ------
        BrowserFailure
            If the browser or its context is gone.
        """
        file = TreeFile(self._options.tree_file)
        try:
            tree = file.read(task) or SearchTree(task=task, budget=self._options.budget)
        except InvalidInput as error:
            url = self._session.tabs.current.page.url
            return AgentRun(task, AttemptEnd.FAILED, "", url, "", (), str(error))
        search = BestFirstSearch(
            self._session,
            self._expander,
            self._map,
            limits=self._options.limits,
            tree=tree,
            file=file,
            on_step=on_step,
        )
        if tree.end is None:
            try:
                await search.work()
            except ModelBudgetSpent as error:
                search.fail(AttemptEnd.BUDGET, error)
            except BrowserFailure:
                raise
            except (ModelUnavailable, ModelRejected, CassetteMiss) as error:
                is_too_long = isinstance(error, ContextTooLong)
                search.fail(AttemptEnd.FAILED if is_too_long else AttemptEnd.UNAVAILABLE, error)
            except WaygraphError as error:  # of the model's replies, or of the maps
                search.fail(AttemptEnd.FAILED, error)
        return run_of(tree, await search.shown())
