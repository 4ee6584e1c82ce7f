"""Values of states by milestones: verdicts as labels, and by their log probabilities."""

import asyncio
import json
import math

import pytest

from waygraph.agents.models.chat import ChatReply, TokenLogprob, no_usage
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.search import ChecklistReward, JudgedAction, Note, PastAction, Trajectory
from waygraph.agents.search.checklist import verdict_values
from waygraph.agents.search.state_description import StateDescription

STATE = StateDescription("http://a.example/", "Start", "Welcome", ("Welcome",), "heading 'Welcome'")
MILESTONES = json.dumps({"milestones": ["The cart is open.", "The order is sent."]})


def verdicts(*values):
    return json.dumps({"verdicts": values})


def test_milestones_are_asked_for_once_and_verdicts_are_averaged():
    model = ScriptedModel([MILESTONES, verdicts("yes", "in_progress"), verdicts("no", "no")])
    reward = ChecklistReward(model)
    judged = asyncio.run(reward.judge_states(Trajectory("order"), [STATE, STATE]))
    assert judged.values == (0.75, 0.0)
    assert judged.usage.calls == 3
    assert "1. The cart is open.\n2. The order is sent." in model.requests[1].messages[1].text


def test_an_action_is_judged_on_its_page():
    model = ScriptedModel([MILESTONES, verdicts("yes", "yes")])
    action = JudgedAction('click button "Order"', "It sends the cart.")
    judged = asyncio.run(ChecklistReward(model).judge_actions(Trajectory("order"), STATE, [action]))
    assert judged.values == (1.0,)
    assert 'on this page: click button "Order"\nWhy: It sends the cart.' in model.requests[1].messages[1].text


def test_missing_verdicts_count_as_no():
    model = ScriptedModel([MILESTONES, verdicts("yes")])
    assert asyncio.run(ChecklistReward(model).judge_states(Trajectory("order"), [STATE])).values == (0.5,)


def test_milestones_are_made_from_the_task_and_the_page_where_it_begins():
    model = ScriptedModel([MILESTONES, verdicts("yes", "yes")])
    asyncio.run(ChecklistReward(model).judge_states(Trajectory("order"), [STATE]))
    asked = model.requests[0].messages[1].text
    assert "http://a.example/\nheading 'Welcome'" in asked


def test_the_judge_sees_the_steps_the_notes_of_all_pages_and_the_progress_before():
    step = PastAction("click link 'Cart'", "http://a.example/cart", "Cart", summary="A shop", thinking="It has the sum")
    note = Note("The lamp costs 10", "http://a.example/lamp")
    known = Trajectory("order", (step,), (note,), ("- The cart is open.: yes",))
    model = ScriptedModel([MILESTONES, verdicts("yes", "no")])
    judged = asyncio.run(ChecklistReward(model).judge_states(known, [STATE]))
    asked = model.requests[1].messages[1].text
    assert '"page": "A shop", "why": "It has the sum", "action": "click link \'Cart\'"' in asked
    assert '{"note": "The lamp costs 10", "at": "http://a.example/lamp"}' in asked
    assert "- The cart is open.: yes" in asked
    assert judged.progress == (("- The cart is open.: yes", "- The order is sent.: no"),)


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
