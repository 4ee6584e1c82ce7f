"""Of the actions that were proposed, the one is done that the judge chooses."""

import json
from types import SimpleNamespace

import pytest

from waygraph.agents.loop.decision import Situation
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.occam.judge import choose
from waygraph.agents.occam.reply import OccamCandidate

SITUATION = Situation("Buy a lamp", SimpleNamespace(url="http://a.example/", text="button [1] 'Buy'"), 5)
MEMORY = ["Plans:\n[0] Buy a lamp", "Notes:\n- red", "", "Latest steps: go_back"]


def proposed(*actions):
    return [OccamCandidate(reason="because", action=action) for action in actions]


def verdict(choice):
    return json.dumps({"plan_progress": "half", "assessments": [], "reason": "shorter", "choice": choice})


async def test_the_judge_sees_task_memory_page_and_each_action_once_and_chooses_by_number():
    model = ScriptedModel([verdict(2)])
    actions = proposed("click [1]", "go_back", "Click  [1]", "stop [N/A]")
    chosen, judged = await choose(model, SITUATION, MEMORY, actions)
    assert chosen is actions[1]
    assert judged.plan_progress == "half"
    question = model.requests[0].messages[-1].text
    assert question.count("click [1]") == 1
    assert "3. stop [N/A]" in question
    for part in ("Buy a lamp", "Notes:\n- red", "Latest steps: go_back", "button [1] 'Buy'"):
        assert part in question


@pytest.mark.parametrize("answers", [[verdict(9)], ["no idea", "still none"]])
async def test_without_a_usable_verdict_the_first_action_is_taken(answers):
    actions = proposed("click [1]", "go_back")
    assert (await choose(ScriptedModel(answers), SITUATION, [], actions))[0] is actions[0]


async def test_no_judge_is_asked_about_a_single_action():
    assert (await choose(ScriptedModel([]), SITUATION, [], proposed("go_back")))[1] is None
