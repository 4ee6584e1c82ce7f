"""Candidates from a map: where a search begins, the states that its search finds for the task."""

from __future__ import annotations

from waygraph.agents.search.generator import ProposalRequest, Proposals, ProposedAction
from waygraph.agents.search.search_actions import VisitAction
from waygraph.client.map_source import AsyncMapApi
from waygraph.core.schemas import Hit


class MapHits:
    """Proposes walks to the best hits of a map, in the state where the search begins.

    Pages that were not visited when the map was made (leads) are hits too, unless a rule leaves their links alone: a
    map seldom has a whole site.

    Parameters
    ----------
    maps
        The maps.
    site
        Key of the site.
    value_per_score
        Factor from the search's scores to the values of the reward, by which leads are judged; None: the reward judges
        them by the names of their links.
    name
        Name in the records of the search.
    """

    def __init__(
        self, maps: AsyncMapApi, site: str, *, value_per_score: float | None = None, name: str = "map"
    ) -> None:
        self._maps = maps
        self._site = site
        self._value_per_score = value_per_score
        self.name = name

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        if not request.is_start:
            return Proposals(())
        found = await self._maps.search(self._site, request.task, k=request.limit)
        return Proposals(tuple(self._visit(hit) for hit in found.hits if not hit.refusal))

    def _visit(self, hit: Hit) -> ProposedAction:
        factor = None if hit.visited else self._value_per_score
        value = None if factor is None else hit.score * factor
        return ProposedAction(VisitAction(state=hit.node_id, title=hit.title), value)
