"""Lookahead: which state of a map a page shows, where its elements lead, and what those states show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from waygraph.core.errors import NotFound
from waygraph.core.schemas import NodeAnswer, StepModel
from waygraph.core.urls import site_key
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.sdk.facade import AsyncWaygraph
from waygraph.sdk.state_recognition import StateRecognizer


@dataclass(frozen=True, slots=True)
class KnownEdge:
    """What the map says of an action.

    Attributes
    ----------
    target
        Id of the state that it leads to; empty: the map does not say, because the action is unknown, was reported as
        broken, or leads to a page that was not visited.
    sends
        Whether it sends requests that may change data, which were stopped while the site was mapped.
    """

    target: str = ""
    sends: bool = False


#: Returns how near states are to the end of the task.
JudgeStates = Callable[[Sequence[NodeAnswer]], Awaitable[Sequence[float]]]


class MapLookahead:
    """Asks maps about the states around a page. States are asked for once.

    Parameters
    ----------
    maps
        The maps.
    sites
        Keys of the sites that are asked about.
    """

    def __init__(self, maps: AsyncWaygraph, sites: Sequence[str]) -> None:
        self.maps = maps
        self.sites = tuple(sites)
        self._states: dict[str, NodeAnswer | None] = {}
        self._site_of: dict[str, str] = {}
        self._recognizers = {site: StateRecognizer(maps, site) for site in sites}

    async def recognize(self, snapshot: Snapshot) -> str:
        """Return the id of the state that a page certainly shows; empty: its site's map has none, or there is none."""
        recognizer = self._recognizers.get(site_key(snapshot.raw_url))
        if recognizer is None:
            return ""
        position = await recognizer.locate(snapshot, None, with_features=True)
        return position.state.node_id if position.state is not None else ""

    async def state(self, node_id: str) -> NodeAnswer | None:
        """Return a state; None if the map has none with this id, or only knows of the page by links."""
        if node_id not in self._states:
            await self._find(node_id)
        return self._states[node_id]

    async def site_of(self, node_id: str) -> str:
        """Return the site whose map has a state or lead; empty: none has."""
        if node_id not in self._states:
            await self._find(node_id)
        return self._site_of.get(node_id, "")

    async def _find(self, node_id: str) -> None:
        # The id of a state is made of its URL, so that no two sites share one.
        self._states[node_id] = None
        for site in self.sites:
            try:
                answer = await self.maps.node(site, node_id)
            except NotFound:
                continue
            self._site_of[node_id] = site
            self._states[node_id] = answer if answer.lead is None else None
            return

    async def edge(self, state: str, gesture: Action) -> KnownEdge:
        """Return what the map says of an action in a state."""
        node = await self.state(state)
        found = [each for each in node.edges if _is_same(each, gesture)] if node is not None else []
        sends = any(each.sends for each in found)
        target = next((each.expected_node_id for each in found if _is_certain(each)), "")
        return KnownEdge(target if target and await self.state(target) is not None else "", sends)

    async def states_around(
        self, start: str, judge: JudgeStates, *, limit: int, skip: Collection[str]
    ) -> list[tuple[NodeAnswer, float]]:
        """Return the states that a walk from a state passes which always goes on from the best state so far.

        Parameters
        ----------
        start
            The state.
        judge
            Judges states.
        limit
            Number of states that are judged.
        skip
            States that are not judged: they were judged or visited.

        Returns
        -------
        list of tuple
            The states with their values, best first; of equal ones the one that was found first.
        """
        seen, open_states, found = {start, *skip}, [(0.0, start)], list[tuple[NodeAnswer, float]]()
        while open_states and len(found) < limit:
            best = max(open_states, key=lambda pair: pair[0])
            open_states.remove(best)
            node = await self.state(best[1])
            targets = [each.expected_node_id for each in node.edges if _is_certain(each)] if node is not None else []
            new = [target for target in dict.fromkeys(targets) if target not in seen][: limit - len(found)]
            seen.update(new)
            states = [answer for target in new if (answer := await self.state(target)) is not None]
            judged = list(zip(states, await judge(states), strict=True)) if states else []
            found += judged
            open_states += [(value, answer.node_id) for answer, value in judged]
        return sorted(found, key=lambda pair: -pair[1])


def _is_certain(step: StepModel) -> bool:
    return not (step.sends or step.suspect or step.lead is not None)


def _is_same(step: StepModel, gesture: Action) -> bool:
    """Whether a recorded action is the gesture, on an element of the same role, name, target and place."""
    recorded = step.action
    same = ("kind", "value", "role", "name", "target")
    if any(getattr(recorded, name) != getattr(gesture, name) for name in same):
        return False
    return tuple(recorded.frame) == gesture.frame and (recorded.nth == gesture.nth or recorded.xpath == gesture.xpath)
