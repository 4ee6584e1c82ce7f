"""Recordings, scripts and budgets of model calls."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from waygraph.agents.models.budget import BudgetedModel, ModelBudget
from waygraph.agents.models.cassette import REDACTED, CassetteModel
from waygraph.agents.models.chat import (
    ChatMessage,
    ChatReply,
    ChatRequest,
    ImagePart,
    JsonFormat,
    TokenLogprob,
    add_usage,
    no_usage,
)
from waygraph.agents.models.create import run_budget, task_budget
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.core.errors import CassetteMiss, InvalidInput, ModelBudgetSpent, ModelUnavailable
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import AgentSettings, ChatSettings


def asked(text: str, **changes) -> ChatRequest:
    return ChatRequest((ChatMessage.user(text),), **changes)


async def test_a_recorded_call_needs_no_model(tmp_path):
    path = tmp_path / "calls.jsonl"
    model = ScriptedModel(["one", "two"])
    recording = CassetteModel(path, model)
    assert (await recording.complete(asked("a"))).text == "one"
    assert (await recording.complete(asked("a"))).text == "one"
    assert (await recording.complete(asked("b"))).text == "two"
    assert len(model.requests) == 2
    replay = CassetteModel(path)
    assert [(await replay.complete(asked(text))).text for text in "ab"] == ["one", "two"]
    with pytest.raises(CassetteMiss):
        await replay.complete(asked("c"))


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.5}, {"top_p": 0.5}, {"max_tokens": 5}, {"top_logprobs": 1}, {"seed": 1},
        {"json_format": JsonFormat("X", {"type": "object"})},
        {"messages": (ChatMessage.user("a", ImagePart(b"1")),)}, {"messages": (ChatMessage.system("a"),)},
    ],
)  # fmt: skip
async def test_every_part_of_a_request_counts(tmp_path, change):
    recording = CassetteModel(tmp_path / "calls.jsonl", ScriptedModel(["one", "two"]))
    await recording.complete(asked("a"))
    assert (await recording.complete(replace(asked("a"), **change))).text == "two"


async def test_all_of_a_reply_is_kept(tmp_path):
    usage = UsageModel(model="m", calls=2, input_tokens=3, output_tokens=4, seconds=0.5, cost=0.1)
    reply = ChatReply("Yes", usage, (TokenLogprob("Yes", -0.1, (("No", -2.0),)),), is_cut=True)

    class Model:
        async def complete(self, _: ChatRequest) -> ChatReply:
            return reply

    await CassetteModel(tmp_path / "calls.jsonl", Model()).complete(asked("a"))
    assert await CassetteModel(tmp_path / "calls.jsonl").complete(asked("a")) == reply


async def test_secrets_and_images_are_never_written(tmp_path):
    path = tmp_path / "calls.jsonl"
    request = ChatRequest((ChatMessage.user("log in with hunter2-long and hunter2", ImagePart(b"screenshot")),))
    recording = CassetteModel(path, ScriptedModel(["typed hunter2"]), secrets=["hunter2", "hunter2-long"])
    assert (await recording.complete(request)).text == "typed hunter2"
    written = path.read_text()
    assert "hunter2" not in written
    assert "screenshot" not in written
    assert json.loads(written)["request"]["messages"][0]["parts"][0] == f"log in with {REDACTED} and {REDACTED}"
    # Another secret of another day replays the same recording.
    other = ChatRequest((ChatMessage.user("log in with swordfish and swordfish", ImagePart(b"screenshot")),))
    assert (await CassetteModel(path, secrets=["swordfish"]).complete(other)).text == f"typed {REDACTED}"


async def test_half_a_character_does_no_harm(tmp_path):
    recording = CassetteModel(tmp_path / "calls.jsonl", ScriptedModel(["\ud83d"]))
    await recording.complete(asked("\ud83d"))
    assert (await CassetteModel(tmp_path / "calls.jsonl").complete(asked("\ud83d"))).text == "\ufffd"


async def test_a_killed_recorder_leaves_a_recording_that_goes_on(tmp_path):
    path = tmp_path / "calls.jsonl"
    await CassetteModel(path, ScriptedModel(["one"])).complete(asked("a"))
    whole = path.read_text()
    path.write_text(whole + whole[: len(whole) // 2])
    recording = CassetteModel(path, ScriptedModel(["two"]))
    assert (await recording.complete(asked("a"))).text == "one"
    await recording.complete(asked("b"))
    assert (await CassetteModel(path).complete(asked("b"))).text == "two"


async def test_a_file_that_is_no_recording_is_refused(tmp_path):
    (tmp_path / "calls.jsonl").write_text('{"key": 1}\n')
    with pytest.raises(InvalidInput, match="Line 1"):
        CassetteModel(tmp_path / "calls.jsonl")


async def test_a_script_may_compute_replies_and_fail():
    model = ScriptedModel([lambda request: request.messages[0].text.upper(), ModelUnavailable("down")])
    assert (await model.complete(asked("a"))).text == "A"
    with pytest.raises(ModelUnavailable):
        await model.complete(asked("a"))
    with pytest.raises(CassetteMiss):
        await model.complete(asked("a"))


# ---- budgets ---------------------------------------------------------------------------------------------------------


class Priced:
    async def complete(self, _: ChatRequest) -> ChatReply:
        return ChatReply("x", UsageModel(model="m", calls=1, input_tokens=90, output_tokens=10, seconds=0.1, cost=0.01))


async def test_a_task_may_spend_its_own_budget_and_no_more_than_its_runs():
    settings = AgentSettings(task_tokens=150, run_tokens=250)
    run = run_budget(settings)
    first, second, third = (BudgetedModel(Priced(), task_budget(settings, each, run)) for each in "123")
    await first.complete(asked("a"))
    await first.complete(asked("a"))
    with pytest.raises(ModelBudgetSpent, match="task 1"):
        await first.complete(asked("a"))
    await second.complete(asked("a"))
    with pytest.raises(ModelBudgetSpent, match="the run"):
        await third.complete(asked("a"))
    assert (run.spent.calls, run.spent.input_tokens) == (3, 270)


async def test_money_is_limited_by_prices():
    budget = ModelBudget("task 1", max_cost=0.015)
    model = BudgetedModel(Priced(), budget)
    await model.complete(asked("a"))
    await model.complete(asked("a"))
    with pytest.raises(ModelBudgetSpent):
        await model.complete(asked("a"))
    with pytest.raises(InvalidInput, match="no prices"):
        run_budget(AgentSettings(task_cost=1.0))
    assert run_budget(AgentSettings(task_cost=1.0, model=ChatSettings(input_price=1.0)))


def test_the_price_of_calls_without_prices_is_absent():
    assert add_usage(no_usage(), no_usage("m")) == no_usage("m")
    priced = no_usage("m").model_copy(update={"cost": 0.5})
    assert add_usage(priced, no_usage()).cost == 0.5
