"""Of several answers the one is taken on which most agree, or which the judge chooses."""

import json
from types import SimpleNamespace

import pytest

from waygraph.agents.loop.decision import Situation
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.occam.judge import agreed, choose
from waygraph.agents.occam.reply import OccamReply

SITUATION = Situation("Buy a lamp", SimpleNamespace(url="http://a.example/", text="button [1] 'Buy'"), 5)


def reply(action, reason="because"):
    return OccamReply(
        history_summary="", observation_description="", reason=reason, action=action, observation_highlight=[]
    )


def test_three_of_five_agree():
    replies = [reply("click [1]"), reply("click [2]"), reply("Click  [2]"), reply("go_back"), reply("click [2]")]
    assert agreed(replies) is replies[1]
    assert agreed(replies[:4]) is None


async def test_the_judge_sees_each_action_once_and_chooses_by_number():
    model = ScriptedModel([json.dumps({"reason": "shorter", "choice": 2})])
    replies = [reply("click [1]"), reply("go_back"), reply("click [1]"), reply("stop [N/A]")]
    assert await choose(model, SITUATION, "[0] Buy a lamp", replies) is replies[1]
    question = model.requests[0].messages[-1].text
    assert question.count("click [1]") == 1
    assert "3. stop [N/A]" in question


@pytest.mark.parametrize("answers", [['{"reason": "?", "choice": 9}'], ["no idea", "still none"]])
async def test_without_a_usable_verdict_the_first_answer_is_taken(answers):
    replies = [reply("click [1]"), reply("go_back")]
    assert await choose(ScriptedModel(answers), SITUATION, "", replies) is replies[0]


async def test_no_judge_is_asked_when_most_agree():
    assert (await choose(ScriptedModel([]), SITUATION, "", [reply("go_back")])).action == "go_back"
