"""A reward over maps: their states are judged by the score that the map's search gives them for the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waygraph.agents.search.reward import JudgedAction, Judgement, Reward
from waygraph.agents.search.state_description import StateDescription
from waygraph.agents.search.trajectory import Trajectory
from waygraph.client.map_source import AsyncMapApi

#: Number of states that a search of the map returns at most.
_MAX_HITS = 100
#: Factor from scores of the `text` encoder to values of `NearnessReward`, so that states of the map and actions of
#: unknown outcome compare: on the dev questions about the demo shop the best states have 0.99 and 0.44 in the mean.
VALUE_PER_SCORE = 0.44


class MapScores:
    """Judges states of maps by the map's search, and everything else by another reward.

    The search compares the task with all texts of a state, knows which of them the whole site has, and counts rare
    words. It puts the wanted state first more often than `NearnessReward`, and takes one request for a task and site.

    Parameters
    ----------
    maps
        The maps.
    sites
        Keys of the sites.
    other
        Judges pages that no map knows, and actions.
    """

    def __init__(self, maps: AsyncMapApi, sites: Sequence[str], other: Reward) -> None:
        self._maps = maps
        self._sites = tuple(sites)
        self._other = other
        self._latest: tuple[str, Mapping[str, float]] | None = None
        self.judges_answers = other.judges_answers

    async def judge_states(self, trajectory: Trajectory, states: Sequence[StateDescription]) -> Judgement:
        """Return how near states are to the end of a task; see `Reward`."""
        known = await self._values(trajectory.task) if any(each.node_id for each in states) else {}
        lowest = min(known.values(), default=0.0)
        unknown = [each for each in states if not each.node_id]
        judged = await self._other.judge_states(trajectory, unknown) if unknown else Judgement(())
        others = iter(judged.values)
        values = tuple(known.get(each.node_id, lowest) if each.node_id else next(others) for each in states)
        return Judgement(values, judged.usage)

    async def judge_actions(
        self, trajectory: Trajectory, state: StateDescription, actions: Sequence[JudgedAction]
    ) -> Judgement:
        """Return how much actions promise; see `Reward`."""
        return await self._other.judge_actions(trajectory, state, actions)

    async def _values(self, task: str) -> Mapping[str, float]:
        if self._latest is None or self._latest[0] != task:
            hits = [hit for site in self._sites for hit in (await self._maps.search(site, task, k=_MAX_HITS)).hits]
            self._latest = task, {hit.node_id: hit.score * VALUE_PER_SCORE for hit in hits if hit.visited}
        return self._latest[1]
