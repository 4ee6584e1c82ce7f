"""Values of states by milestones: verdicts as labels, and by their log probabilities."""

import asyncio
import json
import math

import pytest

from waygraph.agents.models.chat import ChatReply, TokenLogprob, no_usage
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.search import ChecklistReward
from waygraph.agents.search.checklist import verdict_values
from waygraph.agents.search.state_description import StateDescription

STATE = StateDescription("http://a.example/", "Start", "Welcome", ("Welcome",), "heading 'Welcome'")
MILESTONES = json.dumps({"milestones": ["The cart is open.", "The order is sent."]})


def verdicts(*values):
    return json.dumps({"verdicts": values})


def test_milestones_are_asked_for_once_and_verdicts_are_averaged():
    model = ScriptedModel([MILESTONES, verdicts("yes", "in_progress"), verdicts("no", "no")])
    reward = ChecklistReward(model)
    judged = asyncio.run(reward.judge_states("order", [STATE, STATE]))
    assert judged.values == (0.75, 0.0)
    assert judged.usage.calls == 3
    assert "1. The cart is open.\n2. The order is sent." in model.requests[1].messages[1].text


def test_an_action_is_judged_on_its_page():
    model = ScriptedModel([MILESTONES, verdicts("yes", "yes")])
    judged = asyncio.run(ChecklistReward(model).judge_actions("order", STATE, ['click button "Order"']))
    assert judged.values == (1.0,)
    assert 'Action on this page: click button "Order"' in model.requests[1].messages[1].text


def test_missing_verdicts_count_as_no():
    model = ScriptedModel([MILESTONES, verdicts("yes")])
    assert asyncio.run(ChecklistReward(model).judge_states("order", [STATE])).values == (0.5,)


def reply(*tokens):
    logprobs = tuple(
        TokenLogprob(text, 0.0, tuple((each, math.log(p)) for each, p in alternatives.items()))
        for text, alternatives in tokens
    )
    return ChatReply("".join(text for text, _ in tokens), no_usage(), logprobs)


def test_log_probabilities_weigh_the_alternatives_of_a_verdict():
    likely = reply(
        ('{"verdicts": ["', {}),
        ("yes", {"yes": 0.6, "in": 0.2, "no": 0.2}),
        ('", "', {}),
        ("in", {"in": 0.5, "no": 0.5}),
        ("_progress", {"_progress": 1.0}),
        ('"]}', {}),
    )
    assert verdict_values(["yes", "in_progress"], likely) == pytest.approx([0.7, 0.25])


def test_without_alternatives_that_begin_a_verdict_the_verdict_is_certain():
    odd = reply(('{"verdicts": ["', {}), ("yes", {"maybe": 1.0}), ('"]}', {}))
    assert verdict_values(["yes"], odd) == [1.0]
    assert verdict_values(["in_progress"], ChatReply("", no_usage())) == [0.5]
