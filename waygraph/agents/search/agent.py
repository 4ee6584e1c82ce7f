"""The tree search: select an action of the frontier, return to its state, perform it, expand what it led to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from waygraph.agents.actions.report import ActionReport
from waygraph.agents.actions.session import AgentSession
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.run_record import AgentRun, AgentStep, AttemptEnd, StepListener, ignore_step
from waygraph.agents.search import frontier
from waygraph.agents.search.backtrack import Backtracker
from waygraph.agents.search.checkpoints import is_reachable
from waygraph.agents.search.expansion import Expander, Expansion
from waygraph.agents.search.generator import CandidateGenerator
from waygraph.agents.search.goto_targets import GotoTargets
from waygraph.agents.search.interruption import settle_interrupted
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.recorded_states import find_again, record_state, same_page
from waygraph.agents.search.requests_seen import RequestsSeen
from waygraph.agents.search.reward import Reward
from waygraph.agents.search.search_actions import VisitAction
from waygraph.agents.search.selection import SearchLimits, Selection, select
from waygraph.agents.search.tree import CandidateStatus, SearchTree, StepRecord, TreeCandidate, TreeNode
from waygraph.agents.search.tree_file import TreeFile
from waygraph.agents.search.validation import ActionValidator
from waygraph.core.errors import (
    BrowserFailure,
    CassetteMiss,
    ContextTooLong,
    InvalidInput,
    ModelBudgetSpent,
    ModelFailure,
    ModelRejected,
    ModelUnavailable,
    WaygraphError,
)
from waygraph.core.schemas import UsageModel
from waygraph.core.urls import site_key
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
    site
        Key of the site whose map is used; empty: no map.
    lookahead_states
        Number of states of the map that are judged around each visited state. Each costs a call of a model reward.
    tree_file
        File that keeps the search, and from which it goes on if it exists; None: it is kept in memory.
    """

    limits: SearchLimits = field(default_factory=SearchLimits)
    budget: int = 4
    branching: int = 3
    retries: int = 2
    site: str = ""
    lookahead_states: int = 40
    tree_file: Path | None = None


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
        self._map = MapLookahead(maps, self._options.site) if maps is not None and self._options.site else None
        self._expander = Expander(
            generators,
            reward,
            ActionValidator(session.options),
            GotoTargets(session),
            self._map,
            branching=self._options.branching,
            lookahead_states=self._options.lookahead_states,
            retries=self._options.retries,
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
        search = _Search(
            self._session, self._expander, self._map, limits=self._options.limits, tree=tree, file=file, on_step=on_step
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
        return _run_of(tree, await search.shown())


class _Search:
    """One search.

    Parameters
    ----------
    session
        The browser session.
    expander
        Adds the actions of states.
    lookahead
        The map; None: there is none.
    limits
        How far it goes.
    tree
        The search so far.
    file
        Keeps the tree.
    on_step
        Called after every step.
    """

    def __init__(
        self,
        session: AgentSession,
        expander: Expander,
        lookahead: MapLookahead | None,
        *,
        limits: SearchLimits,
        tree: SearchTree,
        file: TreeFile,
        on_step: StepListener,
    ) -> None:
        self._session = session
        self._expander = expander
        self._map = lookahead
        self._limits = limits
        self._tree = tree
        self._file = file
        self._on_step = on_step
        self._backtracker = Backtracker(session, lookahead)
        #: The node that the page shows, and its latest observation.
        self._current: int | None = None
        self._observation: PageObservation | None = None
        #: Usage of model calls that no step has been charged with.
        self._usage: UsageModel | None = None

    async def work(self) -> None:
        """Search until an answer is accepted, or nothing is left."""
        await self._begin()
        while True:
            frontier.drop_visited(self._tree)
            selected = select(self._tree, self._limits, current=self._current, is_reachable=self._is_reachable)
            if selected.end is not None:
                await self._finish(selected)
                return
            if selected.candidate is not None:
                await self._perform(selected.candidate, selected)
            self._file.write(self._tree)

    def fail(self, end: AttemptEnd, error: WaygraphError) -> None:
        """Note that a model or the maps failed. The file keeps the search unfinished, so that it can go on."""
        self._file.write(self._tree)
        self._tree.end, self._tree.problem = end, str(error)

    async def shown(self) -> PageObservation:
        """Return the latest observation."""
        return self._observation or await self._look()

    async def _look(self) -> PageObservation:
        self._observation = await self._session.observe()
        return self._observation

    def _is_reachable(self, node: int) -> bool:
        return node == self._current or is_reachable(self._tree, node, with_map=self._map is not None)

    async def _begin(self) -> None:
        """Show and expand the first state, or settle what an earlier process left."""
        tree = self._tree
        observation = await self._look()
        if not tree.nodes:
            await self._expand(await self._arrive(observation, parent=None, candidate=None))
        for each in settle_interrupted(tree):
            node = await self._arrive(observation, parent=each.node, candidate=each.id)
            self._begin_anew(node, each)
            await self._expand(node)
        open_nodes = [each for each in tree.live_nodes() if not (each.is_expanded or each.problem)]
        for node in open_nodes:
            is_open = node.same_as is None and self._is_reachable(node.id)
            if is_open and (self._current == node.id or await self._return_to(node)):
                await self._expand(node)
        self._file.write(tree)

    async def _perform(self, candidate: TreeCandidate, selected: Selection) -> None:
        tree, node = self._tree, self._tree.nodes[candidate.node]
        backtracks = len(tree.backtracks)
        is_visit = isinstance(candidate.action, VisitAction)
        if not is_visit and self._current != node.id and not await self._return_to(node):
            for each in tree.queued:
                if each.node == node.id:
                    frontier.drop(each, "its state could not be reached again")
            tree.prunes += 1
            return
        before = await self.shown()
        # Written before it happens: a process that is killed meanwhile does not repeat what may have changed data.
        candidate.status = CandidateStatus.BEGUN
        self._file.write(tree)
        with RequestsSeen(self._session.tabs.current.page.context) as requests:
            status, message = await self._visit(candidate) if is_visit else await self._act(candidate, before)
        candidate.changed = requests.changing(site_key(before.url)) if not is_visit else []
        candidate.reason = message
        arrived: TreeNode | None = None
        if status == "done":
            candidate.status = CandidateStatus.DONE
            arrived = await self._arrive(await self.shown(), parent=node.id, candidate=candidate.id)
        else:
            candidate.status = CandidateStatus.REJECTED if status in {"invalid", "refused"} else CandidateStatus.FAILED
        if candidate.changed:
            arrived = arrived or await self._arrive(await self.shown(), parent=node.id, candidate=candidate.id)
            self._begin_anew(arrived, candidate)
        step = StepRecord(
            state=before.snapshot.id, url=before.url, action=candidate.text, status=status, message=message,
            thinking=candidate.thinking,
        )  # fmt: skip
        tree.log.append(step)
        added = Expansion()
        try:
            if arrived is not None:
                added = await self._expand(arrived)
        except ModelFailure:
            await self._report(step, candidate, selected, added, before, backtracks)
            raise
        await self._report(step, candidate, selected, added, before, backtracks)

    async def _report(  # noqa: PLR0917 - the parts of one step
        self,
        step: StepRecord,
        candidate: TreeCandidate,
        selected: Selection,
        added: Expansion,
        before: PageObservation,
        backtracks: int,
    ) -> None:
        """Complete the record of a step, keep it, and report it."""
        tree = self._tree
        step.usage, self._usage = self._usage, None
        step.details = {
            "node": candidate.node, "candidate": candidate.id, "score": candidate.score, "rule": selected.why.value,
            "expected": candidate.outcome, "result": candidate.result, "changed": list(candidate.changed),
            "backtracks": [each.model_dump() for each in tree.backtracks[backtracks:]],
            "added": [
                {"text": each.text, "score": each.score, "known": bool(each.outcome)} for each in added.candidates
            ],
            "invalid": list(added.problems), "frontier": len(tree.queued),
        }  # fmt: skip
        self._file.write(tree)
        await self._on_step(_step_of(step), before)

    async def _act(self, candidate: TreeCandidate, before: PageObservation) -> tuple[str, str]:
        """Perform an action on the current page, whose element has another id than when it was proposed."""
        action, gesture = candidate.action, candidate.recorded
        if isinstance(action, VisitAction):
            raise TypeError("a walk over the map is no action of a session")
        if gesture is not None:
            element = find_again(gesture, before)
            if element is None:
                return "invalid", f"{gesture} is no longer on the page."
            action = action.model_copy(update={"element": element.ref})
        report: ActionReport = await self._session.act(action)
        if report.observation is not None:
            self._observation = report.observation
        if report.status in {"failed", "page_lost"}:
            self._current = None
            await self._look()
        return report.status, str(report)

    async def _visit(self, candidate: TreeCandidate) -> tuple[str, str]:
        problem = await self._backtracker.visit(candidate.outcome)
        if problem:
            return "failed", f"The state was not reached: {problem}"
        self._observation, self._current = None, None
        return "done", f"Went to {candidate.text.removeprefix('visit ')}."

    async def _arrive(self, observation: PageObservation, *, parent: int | None, candidate: int | None) -> TreeNode:
        """Add the state that the page shows."""
        tree = self._tree
        state = record_state(observation.snapshot)
        same = [each for each in tree.live_nodes() if each.same_as is None and same_page(each.state, state)]
        node = tree.add_node(state, parent=parent, candidate=candidate)
        if self._map is not None and site_key(observation.url) == self._map.site:
            node.map_state = await self._map.recognize(observation.snapshot)
        if observation.snapshot.status >= 400:
            node.problem = f"The server answered with the error {observation.snapshot.status}."
        elif (scope := self._session.options.scope) is not None and scope.refuse_url(observation.url) is not None:
            node.problem = "It is outside of the site of the task."
        elif len(list(tree.ancestry(node.id))) > self._limits.max_depth + 1:
            node.problem = "It is too far from the root."
        elif same:
            node.same_as = same[0].id
        self._current = node.same_as if node.same_as is not None else node.id
        self._observation = observation
        return node

    async def _expand(self, node: TreeNode) -> Expansion:
        """Add the actions of the state that the page shows, if it is a new one."""
        if node.is_expanded or node.problem or node.same_as is not None:
            return Expansion()
        frontier.reduce(self._tree, self._is_reachable)
        done = await self._expander.expand(self._tree, node, await self.shown())
        total = Expansion(usage=self._usage)
        total.charge(done.usage)
        self._usage = total.usage
        self._file.write(self._tree)
        return done

    def _begin_anew(self, node: TreeNode, candidate: TreeCandidate) -> None:
        """Make a node the root: data was changed, so what was recorded before may no longer be true."""
        tree = self._tree
        frontier.clear(tree, f"data was changed by {candidate.text}")
        tree.changes += 1
        tree.budget = max(1, tree.budget - 1)
        tree.root = node.id
        node.same_as, self._current = None, node.id

    async def _return_to(self, node: TreeNode) -> bool:
        record = await self._backtracker.go_back_to(self._tree, node)
        if record.arrived:
            self._current = node.id
            await self._look()
        return record.arrived

    async def _finish(self, selected: Selection) -> None:
        """End the search, on the page that the answer is about if a way leads there."""
        tree, answer = self._tree, selected.candidate
        if answer is not None:
            if self._current != answer.node and self._is_reachable(answer.node):
                await self._return_to(tree.nodes[answer.node])
            answer.status, answer.reason = CandidateStatus.CHOSEN, selected.why.value
        tree.end = selected.end
        self._file.write(tree)


def _step_of(step: StepRecord) -> AgentStep:
    details: dict[str, JsonValue] = step.details
    return AgentStep(step.state, step.url, step.action, step.status, step.message, step.thinking, step.usage, details)


def _run_of(tree: SearchTree, shown: PageObservation) -> AgentRun:
    chosen = tree.chosen
    answer = chosen.action.answer if chosen is not None and chosen.action.action == "stop" else ""
    steps = tuple(_step_of(step) for step in tree.log)
    end = tree.end or AttemptEnd.FAILED
    return AgentRun(tree.task, end, answer, shown.url, shown.snapshot.id, steps, tree.problem)
