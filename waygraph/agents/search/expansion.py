"""Expansion of a state: generate, validate, look ahead, merge, judge, and add to the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from waygraph.agents.actions.safety import ActionRefused
from waygraph.agents.actions.targets import ActionInvalid
from waygraph.agents.actions.types import GotoAction
from waygraph.agents.models.chat import add_usage
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search import frontier
from waygraph.agents.search.dialog_states import dialog_key
from waygraph.agents.search.frontier import MergedProposal, Proposal
from waygraph.agents.search.generator import CandidateGenerator, ProposalRequest, Proposals
from waygraph.agents.search.goto_targets import GotoTargets
from waygraph.agents.search.lookahead import KnownEdge, MapLookahead
from waygraph.agents.search.reward import JudgedAction, Judgement, Reward
from waygraph.agents.search.search_actions import VisitAction, describe
from waygraph.agents.search.state_description import StateDescription
from waygraph.agents.search.tree import KnownState, SearchTree, TreeCandidate, TreeNode
from waygraph.agents.search.validation import ActionValidator
from waygraph.core.schemas import NodeAnswer, UsageModel

_NO_EDGE = KnownEdge()


@dataclass(slots=True)
class Expansion:
    """What an expansion did.

    Attributes
    ----------
    candidates
        The candidates that it added.
    problems
        Why proposals were not valid; each is one sentence.
    usage
        Usage of model calls; None without any.
    """

    candidates: list[TreeCandidate] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    usage: UsageModel | None = None

    def charge(self, usage: UsageModel | None) -> None:
        """Add the usage of calls."""
        if usage is not None:
            self.usage = usage if self.usage is None else add_usage(self.usage, usage)


@dataclass(frozen=True, slots=True)
class ExpansionLimits:
    """How much is proposed and judged in one state.

    Attributes
    ----------
    branching
        Number of actions that each generator proposes, and of walks over the map that are added.
    lookahead_states
        Number of states of the map that are judged; 0: only outcomes of proposed actions are.
    retries
        Number of times that a generator is asked again if nothing that it proposed is valid.
    merging
        Whether equal proposals are one.
    """

    branching: int
    lookahead_states: int
    retries: int
    merging: bool = True


class Expander:
    """Adds the actions of visited states to the frontier.

    Parameters
    ----------
    generators
        Propose actions; each is a context.
    reward
        Judges states and actions.
    validator
        Checks proposals.
    targets
        Loads proposed addresses before they are judged; None: they are tried unseen.
    lookahead
        The map; None: there is none.
    limits
        How much is proposed and judged in each state.
    """

    def __init__(
        self,
        generators: Sequence[CandidateGenerator],
        reward: Reward,
        validator: ActionValidator,
        targets: GotoTargets | None,
        lookahead: MapLookahead | None,
        *,
        limits: ExpansionLimits,
    ) -> None:
        self._generators = generators
        self._reward = reward
        self._validator = validator
        self._targets = targets
        self._map = lookahead
        self._limits = limits

    async def expand(self, tree: SearchTree, node: TreeNode, observation: PageObservation) -> Expansion:
        """Add the actions of a state to the frontier. The frontier is not reduced.

        Parameters
        ----------
        tree
            The search.
        node
            The state.
        observation
            The page that shows it.

        Returns
        -------
        Expansion
            What was added. All generators that proposed something may have agreed on an answer: `tree.agreed`.

        Raises
        ------
        ModelFailure
            If a model fails.
        WaygraphError
            If the map's service does not answer.
        """
        done = Expansion()
        state = StateDescription.of_page(observation, node.map_state)
        judged = await self._reward.judge_states(tree.trajectory(node.id), [state])
        done.charge(judged.usage)
        node.value = judged.values[0]
        node.progress = list(judged.progress[0]) if judged.progress else []
        proposals: list[Proposal] = []
        for generator in self._generators:
            proposals += await self._proposals(generator, tree, node, observation, done)
        if self._map is not None and node.map_state:
            proposals += await self._walks(self._map, tree, node, done)
        merged = [each for each in self._merged(proposals) if not _leads_to_visited(tree, node, each.best)]
        scored = await self._scored(tree, node, state, merged, done)
        done.candidates = frontier.add(tree, node.id, scored)
        node.is_expanded = True
        stops = [each for each in done.candidates if each.is_stop]
        if len(done.candidates) == len(stops) == 1 and stops[0].frequency > 1:
            frontier.clear(tree, "all generators agreed on an answer")
            tree.agreed = stops[0].id
        return done

    async def _proposals(
        self,
        generator: CandidateGenerator,
        tree: SearchTree,
        node: TreeNode,
        observation: PageObservation,
        done: Expansion,
    ) -> list[Proposal]:
        """Ask a generator, and again with what was wrong while nothing that it proposed is valid."""
        problems: list[str] = []
        for _ in range(self._limits.retries + 1):
            request = self._request(tree, node, observation, problems)
            proposed = await generator.propose(request)
            done.charge(proposed.usage)
            _note(node, proposed)
            valid, problems = [], list(proposed.problems)
            for each in proposed.actions:
                try:
                    checked = await self._validator.check(each.action, observation)
                except (ActionInvalid, ActionRefused) as error:
                    problems.append(error.message)
                    continue
                if (
                    self._targets is not None
                    and isinstance(each.action, GotoAction)
                    and not (checked.is_destructive or request.has_seen(each.action.url))
                    and (problem := await self._targets.problem(each.action))
                ):
                    problems.append(problem)
                    continue
                edge = _NO_EDGE
                if self._map is not None and node.map_state and checked.gesture is not None:
                    edge = await self._map.edge(node.map_state, checked.gesture)
                if edge.sends and not self._validator.allows_destructive:
                    problems.append(f"{checked.gesture} was left alone: it sends data, as the map says.")
                    continue
                valid.append(
                    Proposal(
                        checked.action,
                        checked.gesture,
                        generator.name,
                        each.score,
                        each.thinking,
                        is_destructive=checked.is_destructive or edge.sends,
                        view=each.view,
                        outcome=checked.action.state if isinstance(checked.action, VisitAction) else edge.target,
                        dialog=dialog_key(tree, node),
                    )
                )
            done.problems += problems
            if valid or not problems:
                return valid
        return []

    def _merged(self, proposals: list[Proposal]) -> list[MergedProposal]:
        return frontier.merge(proposals, merging=self._limits.merging)

    def _request(
        self, tree: SearchTree, node: TreeNode, observation: PageObservation, problems: list[str]
    ) -> ProposalRequest:
        return ProposalRequest(
            tree.trajectory(node.id),
            observation,
            self._limits.branching,
            is_start=node.id == tree.root,
            sites=self._map.sites if self._map is not None else (),
            seen=frontier.visited_urls(tree),
            problems=tuple(problems),
        )

    async def _walks(self, known: MapLookahead, tree: SearchTree, node: TreeNode, done: Expansion) -> list[Proposal]:
        """Return walks to the best states of the map around a node."""
        if not self._limits.lookahead_states:
            return []

        async def judge(states: Sequence[NodeAnswer]) -> Sequence[float]:
            return await self._known_values(tree, node, states, done)

        visited = {each.map_state for each in tree.live_nodes() if each.map_state}
        found = await known.states_around(node.map_state, judge, limit=self._limits.lookahead_states, skip=visited)
        return [
            Proposal(VisitAction(state=each.node_id, title=each.title), None, "lookahead", outcome=each.node_id)
            for each, _ in found[: self._limits.branching]
        ]

    async def _scored(
        self, tree: SearchTree, node: TreeNode, state: StateDescription, merged: list[MergedProposal], done: Expansion
    ) -> list[tuple[MergedProposal, float]]:
        """Return each proposal with its value: of its known outcome, else as judged."""
        values: dict[int, float] = {}
        for number, each in enumerate(merged):
            if each.best.action.action == "stop" and not self._reward.judges_answers:
                values[number] = node.value
            elif each.best.outcome and self._map is not None:
                answer = await self._map.state(each.best.outcome)
                if answer is not None:
                    values[number] = (await self._known_values(tree, node, [answer], done))[0]
        unknown = [number for number in range(len(merged)) if number not in values]
        values |= {number: score for number in unknown if (score := merged[number].best.score) is not None}
        if unscored := [number for number in unknown if number not in values]:
            proposed = [merged[number].best for number in unscored]
            actions = [JudgedAction(describe(each.action, each.gesture), each.thinking, each.view) for each in proposed]
            judged: Judgement = await self._reward.judge_actions(tree.trajectory(node.id), state, actions)
            done.charge(judged.usage)
            values |= dict(zip(unscored, judged.values, strict=True))
        return [(each, values[number]) for number, each in enumerate(merged)]

    async def _known_values(
        self, tree: SearchTree, node: TreeNode, states: Sequence[NodeAnswer], done: Expansion
    ) -> list[float]:
        """Return the values of states of the map, and record those that are judged for the first time."""
        new = [each for each in states if each.node_id not in tree.known]
        if new:
            trajectory = tree.trajectory(node.id)
            judged = await self._reward.judge_states(trajectory, [StateDescription.of_map(each) for each in new])
            done.charge(judged.usage)
            for each, value in zip(new, judged.values, strict=True):
                known = KnownState(node_id=each.node_id, url=each.url, title=each.title, value=value, seen_from=node.id)
                tree.known[each.node_id] = known
        return [tree.known[each.node_id].value for each in states]


def _note(node: TreeNode, proposed: Proposals) -> None:
    """Keep what a model read in a state. The first summary is enough; equal notes are one."""
    node.summary = node.summary or proposed.summary
    node.notes += [each for each in proposed.notes if each not in node.notes]


def _leads_to_visited(tree: SearchTree, node: TreeNode, proposal: Proposal) -> bool:
    """Whether the map says that an action leads to a state that was visited, this one included."""
    return proposal.outcome != "" and any(
        each.map_state == proposal.outcome for each in tree.live_nodes() if each.id == node.id or each.is_expanded
    )
