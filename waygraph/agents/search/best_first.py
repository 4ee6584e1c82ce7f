"""The rounds of a search: select an action, return to its state, perform it, expand what it led to."""

from __future__ import annotations

from waygraph.agents.actions.session import AgentSession
from waygraph.agents.actions.types import DismissAction
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.run_record import AttemptEnd, StepListener
from waygraph.agents.search import frontier
from waygraph.agents.search.arrival import Arrivals
from waygraph.agents.search.backtrack import Backtracker
from waygraph.agents.search.checkpoints import is_reachable
from waygraph.agents.search.dialog_states import opener_of, opens_again, page_behind
from waygraph.agents.search.expansion import Expander, Expansion
from waygraph.agents.search.expected_state import unstable_at
from waygraph.agents.search.interruption import settle_interrupted
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.recorded_states import find_again, note_unstable, record_state, same_page
from waygraph.agents.search.requests_seen import RequestsSeen, changes_when_loaded
from waygraph.agents.search.run_of_tree import step_of
from waygraph.agents.search.search_actions import VisitAction
from waygraph.agents.search.selection import SearchLimits, Selection, select
from waygraph.agents.search.tree import (
    BacktrackRecord,
    CandidateStatus,
    SearchTree,
    StepRecord,
    TreeCandidate,
    TreeNode,
)
from waygraph.agents.search.tree_file import TreeFile
from waygraph.core.errors import ModelFailure, WaygraphError
from waygraph.core.schemas import UsageModel

#: Dialogs in a row that are answered: a page may raise them in an endless loop.
_MAX_DIALOGS = 5


class BestFirstSearch:
    """One search over a tree that may already hold a part of it.

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
        self._arrivals = Arrivals(session, lookahead, limits.max_depth)
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
            if not self._limits.backtracking:
                frontier.drop_elsewhere(self._tree, self._current)
            selected = select(self._tree, self._limits, current=self._current, leads_back=self._leads_back)
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
        observation = await self._session.observe()
        for _ in range(_MAX_DIALOGS):
            if observation.dialog is None:
                break
            observation = (await self._session.act(DismissAction())).observation or observation
        self._observation = observation
        return observation

    def _leads_back(self, node: int) -> bool:
        return is_reachable(self._tree, node, with_map=self._map is not None)

    def _is_reachable(self, node: int) -> bool:
        return is_reachable(self._tree, node, current=self._current, with_map=self._map is not None)

    async def _begin(self) -> None:
        """Show and expand the first state, or settle what an earlier process left."""
        tree = self._tree
        observation = await self._look()
        if not tree.nodes:
            await self._expand(await self._arrive(observation, parent=None, candidate=None))
        for each in settle_interrupted(tree):
            node = await self._arrive(observation, parent=each.node, candidate=each.id)
            await self._begin_anew(node, each)
            await self._expand(node)
        open_nodes = [each for each in tree.live_nodes() if not (each.is_expanded or each.problem)]
        for node in open_nodes:
            is_open = node.same_as is None and self._is_reachable(node.id)
            if is_open and await self._show(node, elsewhere=False):
                await self._expand(node)
        self._file.write(tree)

    async def _perform(self, candidate: TreeCandidate, selected: Selection) -> None:
        tree, node = self._tree, self._tree.nodes[candidate.node]
        backtracks = len(tree.backtracks)
        is_visit = isinstance(candidate.action, VisitAction)
        if not await self._show(node, elsewhere=is_visit):
            for each in tree.queued:
                if each.node == node.id:
                    frontier.drop(each, "its state could not be reached again")
            tree.prunes += 1
            return
        # What the page shows now, and not what it showed when it was visited: it may have changed by itself since.
        before = await self._look() if candidate.gesture is not None else await self.shown()
        if self._current == node.id:
            note_unstable(node, record_state(before.snapshot))
        # Written before it happens: a process that is killed meanwhile does not repeat what may have changed data.
        candidate.status = CandidateStatus.BEGUN
        self._file.write(tree)
        with RequestsSeen(self._session.tabs.current.page.context) as requests:
            status, message = await self._visit(candidate) if is_visit else await self._act(candidate, before)
        candidate.changed = requests.changing(before.url) if not is_visit else []
        candidate.reason = message
        arrived: TreeNode | None = None
        if status == "done":
            candidate.status = CandidateStatus.DONE
            arrived = await self._arrive(await self.shown(), parent=node.id, candidate=candidate.id, before=before)
            if arrived.same_as == node.id:
                candidate.reason = message = f"{message} It led to the state that it came from."
        else:
            candidate.status = CandidateStatus.REJECTED if status in {"invalid", "refused"} else CandidateStatus.FAILED
        if candidate.changed:
            after = await self.shown()
            arrived = arrived or await self._arrive(after, parent=node.id, candidate=candidate.id, before=before)
            await self._begin_anew(arrived, candidate)
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
        await self._on_step(step_of(step), before)

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
        if gesture is not None:
            await self._backtracker.clicks.wait()
        report = await self._session.act(action)
        self._backtracker.clicks.note(is_load=gesture is None)
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

    async def _arrive(
        self,
        observation: PageObservation,
        *,
        parent: int | None,
        candidate: int | None,
        before: PageObservation | None = None,
    ) -> TreeNode:
        node = await self._arrivals.arrive(self._tree, observation, parent=parent, candidate=candidate, before=before)
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

    async def _begin_anew(self, node: TreeNode, candidate: TreeCandidate) -> None:
        """Make a node the root: data was changed, so what was recorded before may no longer be true.

        Its URL is the only way back to what follows that the tree has. Whether it shows the state is found out now: a
        panel that the action opened beside is not there after a load.
        """
        if not self._limits.begin_anew:
            return
        tree = self._tree
        frontier.clear(tree, f"data was changed by {candidate.text}")
        tree.changes += 1
        tree.budget = max(1, tree.budget - 1)
        tree.root = node.id
        node.same_as, self._current = None, node.id
        if node.dialog:
            return
        if changes_when_loaded(node.state.address):
            node.loads = "no"
        else:
            await self._backtracker.test_url(tree, node)

    @property
    def _dialog(self) -> TreeNode | None:
        """The node that is shown, if it is a dialog."""
        shown = self._tree.nodes[self._current] if self._current is not None else None
        return shown if shown is not None and shown.dialog else None

    async def _leave_dialog(self, node: TreeNode) -> None:
        """Dismiss the dialog that is shown. Mostly its page is left as it was."""
        observation, behind = await self._look(), page_behind(self._tree, node)
        is_same = same_page(behind.state, record_state(observation.snapshot), unstable_at(self._tree, behind.state.url))
        is_there = is_same and observation.dialog is None and self._tree.is_live(behind.id)
        self._current = behind.id if is_there else None

    async def _open_again(self, node: TreeNode) -> bool:
        """Perform the action that opened a dialog again, on the page where it did; return whether it asks the same."""
        tree, opener = self._tree, opener_of(self._tree, node)
        if opener is None or not (opens_again(tree, node) and tree.is_live(opener.node)):
            return False  # what the opener changed, it would change again
        if self._current != opener.node and not await self._return_to(tree.nodes[opener.node]):
            return False
        before = await self._look()
        with RequestsSeen(self._session.tabs.current.page.context) as requests:
            await self._act(opener, before)
        shown, self._current = await self.shown(), None
        if changed := requests.changing(before.url):
            opener.changed = changed
            arrived = await self._arrive(shown, parent=opener.node, candidate=opener.id, before=before)
            await self._begin_anew(arrived, opener)
            await self._expand(arrived)
        elif shown.dialog is not None and str(shown.dialog) == node.dialog:
            self._current = node.id
        else:
            await self._look()
        is_open = self._current == node.id
        problem = "" if is_open else "The action that opened the dialog did not open it again."
        tried = [f"dialog:{opener.node}"]
        self._tree.backtracks.append(
            BacktrackRecord(step=self._tree.steps, target=node.id, tried=tried, arrived=is_open, problem=problem)
        )
        return is_open

    async def _show(self, node: TreeNode, *, elsewhere: bool) -> bool:
        """Show a node before an action on it, or leave a dialog before one elsewhere; return whether that was done."""
        if self._dialog is not None and (elsewhere or self._current != node.id):
            await self._leave_dialog(self._dialog)
        return elsewhere or self._current == node.id or await self._return_to(node)

    async def _return_to(self, node: TreeNode) -> bool:
        if node.dialog:
            return await self._open_again(node)
        record = await self._backtracker.go_back_to(self._tree, node)
        if record.arrived:
            self._current = node.id
            await self._look()
        return record.arrived

    async def _finish(self, selected: Selection) -> None:
        """End the search, on the page that the answer is about if a way leads there."""
        tree, answer = self._tree, selected.candidate
        if answer is not None:
            node = page_behind(tree, tree.nodes[answer.node])
            if self._current not in {node.id, answer.node} and self._is_reachable(node.id):
                await self._show(node, elsewhere=False)
            answer.status, answer.reason = CandidateStatus.CHOSEN, selected.why.value
        tree.end = selected.end
        self._file.write(tree)
