"""A search over several sites asks the map of each."""

from waygraph.agents.search import MapHits, Trajectory
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.core.errors import NotFound
from waygraph.core.schemas import Hit, SearchAnswer


class Maps:
    """One state on each of two sites."""

    async def node(self, site, node_id):
        if node_id != f"state of {site}":
            raise NotFound(node_id)
        return type("Node", (), {"node_id": node_id, "lead": None, "edges": ()})()

    async def search(self, site, query, k):  # noqa: ARG002 - a map
        return SearchAnswer(hits=[Hit(rank=1, node_id=f"state of {site}", url="", title=site, score=1.0)])


async def test_a_state_is_found_on_the_site_whose_map_has_it():
    known = MapLookahead(Maps(), ["a.example", "b.example"])
    assert await known.site_of("state of b.example") == "b.example"
    assert (await known.state("state of a.example")).node_id == "state of a.example"
    assert await known.site_of("of nobody") == ""
    assert await known.state("of nobody") is None


async def test_the_best_hits_of_every_site_are_candidates():
    request = type("Request", (), {"trajectory": Trajectory("t"), "task": "t", "limit": 3, "is_start": True})()
    found = await MapHits(Maps(), ["a.example", "b.example"]).propose(request)
    assert [each.action.state for each in found.actions] == ["state of a.example", "state of b.example"]
