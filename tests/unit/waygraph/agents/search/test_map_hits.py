"""Candidates from the search of a map."""

from types import SimpleNamespace

import pytest

from waygraph.agents.search import MapHits
from waygraph.core.schemas import Hit, SearchAnswer


class Maps:
    """Finds a state, a page that was not visited, and one that must not be."""

    async def search(self, site, query, k):  # noqa: ARG002 - a map
        def hit(rank, name, **more):
            return Hit(rank=rank, node_id=name, url="", title=name, score=1 / rank, **more)

        lead, refused = hit(2, "lead", visited=False), hit(3, "sign out", visited=False, refusal="hazard")
        return SearchAnswer(hits=[hit(1, "state"), lead, refused][:k])


def request(*, is_start=True):
    return SimpleNamespace(task="a task", limit=5, is_start=is_start)


async def proposed(hits, **more):
    found = await hits.propose(request(**more))
    return [(each.action.state, each.score) for each in found.actions]


async def test_pages_that_were_not_visited_have_the_value_of_their_score():
    assert await proposed(MapHits(Maps(), ["a.example"], value_per_score=0.4)) == [
        ("state", None),
        ("lead", pytest.approx(0.2)),
    ]


async def test_without_a_factor_the_reward_judges_them():
    assert await proposed(MapHits(Maps(), ["a.example"])) == [("state", None), ("lead", None)]


async def test_nothing_is_proposed_after_the_start():
    assert await proposed(MapHits(Maps(), ["a.example"], value_per_score=0.4), is_start=False) == []
