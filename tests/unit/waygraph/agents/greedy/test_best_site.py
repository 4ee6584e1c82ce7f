"""Which of several mapped sites the greedy agent goes to."""

from types import SimpleNamespace

import pytest

from waygraph.agents.greedy import GreedyAgent, GreedyOptions
from waygraph.core.errors import NotFound


class Maps:
    def __init__(self, found):
        self.found = found

    async def search(self, site, _):
        if self.found[site] is None:
            raise NotFound("no such map")
        score, confidence, nothing_matches = self.found[site]
        hits = [SimpleNamespace(score=score)]
        return SimpleNamespace(hits=hits, confidence=confidence, nothing_matches=nothing_matches)


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({"a": (0.9, 0.39, False), "b": (0.8, 0.89, False)}, "b"),
        ({"a": (0.8, 0.39, False), "b": (0.9, 0.39, False)}, "b"),
        ({"a": (0.7, 0.89, True), "b": (0.8, 0.39, False)}, "b"),
        ({"a": None, "b": (0.7, None, True)}, "b"),
        ({"a": (0.8, 0.39, False), "b": (0.8, 0.39, False)}, "a"),
    ],
    ids=[
        "the surer map",
        "the better score of equally sure maps",
        "a map where something matches",
        "a map that can be read",
        "the first of equals",
    ],
)
async def test_the_site_is_that_of(found, best):
    agent = GreedyAgent(None, None, GreedyOptions(sites=("a", "b")), maps=Maps(found))
    assert await agent._best_site("task") == best
