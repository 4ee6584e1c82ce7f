"""Candidates from a map: where a search begins, the states that its search finds for the task."""

from __future__ import annotations

from waygraph.agents.search.generator import ProposalRequest, Proposals, ProposedAction
from waygraph.agents.search.search_actions import VisitAction
from waygraph.client.map_source import AsyncMapApi


class MapHits:
    """Proposes walks to the best hits of a map, in the state where the search begins.

    Pages that were not visited when the map was made are left out: nothing is known of them that could be judged.

    Parameters
    ----------
    maps
        The maps.
    site
        Key of the site.
    name
        Name in the records of the search.
    """

    def __init__(self, maps: AsyncMapApi, site: str, *, name: str = "map") -> None:
        self._maps = maps
        self._site = site
        self.name = name

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        if not request.is_start:
            return Proposals(())
        found = await self._maps.search(self._site, request.task, k=request.limit)
        return Proposals(
            tuple(ProposedAction(VisitAction(state=hit.node_id, title=hit.title)) for hit in found.hits if hit.visited)
        )
