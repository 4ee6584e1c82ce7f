"""Candidates from maps: where a search begins, the states that their search finds for the task."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.agents.search.generator import ProposalRequest, Proposals, ProposedAction
from waygraph.agents.search.search_actions import VisitAction
from waygraph.client.map_source import AsyncMapApi
from waygraph.core.schemas import Hit


class MapHits:
    """Proposes walks to the best hits of each map, in the state where the search begins.

    Pages that were not visited when the map was made (leads) are hits too, unless a rule leaves their links alone: a
    map seldom has a whole site.

    Parameters
    ----------
    maps
        The maps.
    sites
        Keys of the sites.
    value_per_score
        Factor from the search's scores to the values of the reward, by which leads are judged; None: the reward judges
        them by the names of their links.
    name
        Name in the records of the search.
    """

    def __init__(
        self, maps: AsyncMapApi, sites: Sequence[str], *, value_per_score: float | None = None, name: str = "map"
    ) -> None:
        self._maps = maps
        self._sites = tuple(sites)
        self._value_per_score = value_per_score
        self.name = name

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        if not request.is_start:
            return Proposals(())
        # Scores of two maps do not compare: each site has its share.
        found = [await self._maps.search(site, request.task, k=request.limit) for site in self._sites]
        return Proposals(tuple(self._visit(hit) for each in found for hit in each.hits if not hit.refusal))

    def _visit(self, hit: Hit) -> ProposedAction:
        factor = None if hit.visited else self._value_per_score
        value = None if factor is None else hit.score * factor
        return ProposedAction(VisitAction(state=hit.node_id, title=hit.title), value)
