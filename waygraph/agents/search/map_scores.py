"""A reward over a map: its states are judged by the score that the map's search gives them for the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waygraph.agents.search.reward import Judgement, Reward
from waygraph.agents.search.state_description import StateDescription
from waygraph.client.map_source import AsyncMapApi

#: Number of states that a search of the map returns at most.
_MAX_HITS = 100
#: Factor from scores of the `text` encoder to values of `NearnessReward`, so that states of the map and actions of
#: unknown outcome compare: on the dev questions about the demo shop the best states have 0.99 and 0.44 in the mean.
VALUE_PER_SCORE = 0.44


class MapScores:
    """Judges states of a map by the map's search, and everything else by another reward.

    The search compares the task with all texts of a state, knows which of them the whole site has, and counts rare
    words. It puts the wanted state first more often than `NearnessReward`, and takes one request for a task.

    Parameters
    ----------
    maps
        The maps.
    site
        Key of the site.
    other
        Judges pages that the map does not know, and actions.
    """

    def __init__(self, maps: AsyncMapApi, site: str, other: Reward) -> None:
        self._maps = maps
        self._site = site
        self._other = other
        self._latest: tuple[str, Mapping[str, float]] | None = None

    async def judge_states(self, task: str, states: Sequence[StateDescription]) -> Judgement:
        """Return how near states are to the end of a task; see `Reward`."""
        known = await self._values(task) if any(each.node_id for each in states) else {}
        lowest = min(known.values(), default=0.0)
        unknown = [each for each in states if not each.node_id]
        judged = await self._other.judge_states(task, unknown) if unknown else Judgement(())
        others = iter(judged.values)
        values = tuple(known.get(each.node_id, lowest) if each.node_id else next(others) for each in states)
        return Judgement(values, judged.usage)

    async def judge_actions(self, task: str, state: StateDescription, actions: Sequence[str]) -> Judgement:
        """Return how much actions promise; see `Reward`."""
        return await self._other.judge_actions(task, state, actions)

    async def _values(self, task: str) -> Mapping[str, float]:
        if self._latest is None or self._latest[0] != task:
            found = await self._maps.search(self._site, task, k=_MAX_HITS)
            self._latest = task, {hit.node_id: hit.score * VALUE_PER_SCORE for hit in found.hits if hit.visited}
        return self._latest[1]
