"""Values of states by the search of a map."""

import pytest

from waygraph.agents.search import JudgedAction, Judgement, MapScores, Trajectory
from waygraph.agents.search.state_description import StateDescription
from waygraph.core.schemas import Hit, SearchAnswer


class Maps:
    """Finds three states, the last of which was never visited."""

    def __init__(self):
        self.asked = []

    async def search(self, site, query, k):
        self.asked.append((site, query, k))
        scores = {"best": 1.0, "second": 0.5, "lead": 0.9}
        return SearchAnswer(
            hits=[
                Hit(rank=rank, node_id=name, url="", title="", score=score, visited=name != "lead")
                for rank, (name, score) in enumerate(scores.items(), start=1)
            ]
        )


class Ten:
    """Values everything by 10."""

    judges_answers = False

    async def judge_states(self, task, states):  # noqa: ARG002 - a Reward
        return Judgement((10.0,) * len(states))

    async def judge_actions(self, task, state, actions):  # noqa: ARG002
        return Judgement((10.0,) * len(actions))


def described(node_id=""):
    return StateDescription("http://a.example/", "", "", (), "", node_id)


async def test_states_of_the_map_have_its_scores_and_others_another_reward():
    reward = MapScores(Maps(), ["a.example"], Ten())
    judged = await reward.judge_states(Trajectory("a task"), [described("second"), described(), described("best")])
    second, unknown, best = judged.values
    assert (unknown, best) == (10.0, pytest.approx(2 * second))


async def test_a_state_that_the_search_does_not_find_has_the_lowest_value():
    reward = MapScores(Maps(), ["a.example"], Ten())
    lead, second = (await reward.judge_states(Trajectory("a task"), [described("lead"), described("second")])).values
    assert lead == second


async def test_the_map_is_asked_once_for_a_task_and_not_for_unknown_pages():
    maps = Maps()
    reward = MapScores(maps, ["a.example"], Ten())
    await reward.judge_states(Trajectory("a task"), [described()])
    assert maps.asked == []
    for _ in range(2):
        await reward.judge_states(Trajectory("a task"), [described("best")])
    assert maps.asked == [("a.example", "a task", 100)]
    assert (await reward.judge_actions(Trajectory("a task"), described(), [JudgedAction("click")])).values == (10.0,)
