"""The exam's agent that is not ours: its loop of tool calls, and what it is shown of a browser's results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.exam.mcp_clients import MAX_SNAPSHOT, readable
from bench.exam.tool_loop import LEFT_OUT, do_task, system_text, with_latest_snapshot
from waygraph.agents.models.chat import ChatMessage
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.run_record import AgentStep, AttemptEnd

PAGE = '### Page\n- Page URL: http://shop.example/{0}\n### Snapshot\n```yaml\n- heading "{0}"\n```'
ANSWER = json.dumps({"thought": "It is on the page.", "answer": "5 euros"})


def tool_call(name: str, **arguments: object) -> str:
    return json.dumps({"thought": "Look.", "tool": name, "arguments": arguments})


class Run:
    """A run of the loop with scripted replies; every tool shows the page that its argument names."""

    def __init__(self, *replies: str) -> None:
        self.model = ScriptedModel(replies)
        self.calls: list[tuple[str, dict]] = []
        self.steps: list[AgentStep] = []

    async def work(self, max_steps: int = 20) -> tuple[AttemptEnd, str]:
        messages = [ChatMessage.system("rules"), ChatMessage.user(PAGE.format("start"))]
        return await do_task(self.model, messages, self.call, max_steps=max_steps, on_step=self.steps.append)

    async def call(self, name, arguments) -> str:
        self.calls.append((name, dict(arguments)))
        return PAGE.format(arguments.get("url", "?"))

    def last_texts(self) -> list[str]:
        return [message.text for message in self.model.requests[-1].messages]


async def test_a_tool_is_called_and_the_answer_is_a_step_too():
    run = Run(tool_call("browser_navigate", url="help"), ANSWER)
    assert await run.work() == (AttemptEnd.ANSWERED, "5 euros")
    assert run.calls == [("browser_navigate", {"url": "help"})]
    assert [step.action for step in run.steps] == ['browser_navigate {"url": "help"}', 'answer "5 euros"']
    assert all(step.usage is not None and step.usage.calls == 1 for step in run.steps)


async def test_all_messages_are_sent_with_the_latest_snapshot_alone():
    replies = [tool_call("browser_navigate", url=name) for name in ("shelf", "help")]
    run = Run(*replies, ANSWER)
    await run.work()
    system, start, first, shelf, second, page = run.last_texts()
    assert (system, first, second) == ("rules", *replies)
    assert 'heading "help"' in page
    for older, url in ((start, "/start"), (shelf, "/shelf")):
        assert LEFT_OUT in older
        assert url in older
        assert "heading" not in older


def test_a_message_without_a_snapshot_does_not_replace_one():
    shown = ChatMessage.user(PAGE.format("start"))
    found = ChatMessage.user("### Result\nFound 1 match")
    assert with_latest_snapshot([shown, found]) == [shown, found]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("I click the link.", "Invalid JSON"),
        ('{"thought": "Both.", "tool": "browser_snapshot", "answer": "5"}', "give either tool or answer"),
        ('{"thought": "Neither."}', "give either tool or answer"),
        ('{"tool": "browser_snapshot", "arguments": []}', "thought"),
    ],
)
async def test_a_reply_that_is_no_step_is_said_back_and_counts(reply, problem):
    run = Run(reply, ANSWER)
    assert await run.work() == (AttemptEnd.ANSWERED, "5 euros")
    assert run.calls == []
    assert [step.status for step in run.steps] == ["invalid", "kept"]
    assert run.last_texts()[-2] == reply
    assert problem in run.last_texts()[-1]
    assert run.last_texts()[-1].endswith("Steps left: 19.")


async def test_the_last_step_is_announced_and_the_limit_ends_the_task():
    run = Run(*[tool_call("browser_snapshot")] * 3)
    assert await run.work(max_steps=3) == (AttemptEnd.STEP_LIMIT, "")
    assert len(run.steps) == 3
    assert [text.rpartition("\n")[2] for text in run.last_texts()[1::2]] == [
        "Steps left: 3.", "Steps left: 2.", "Steps left: 1. This is the last one: answer.",
    ]  # fmt: skip


def test_the_instructions_list_each_tool_with_its_schema():
    tool = {"name": "navigate", "description": "Find it.", "input_schema": {"type": "object"}}
    text = system_text([tool], "Maps of websites.")
    assert json.dumps(tool) in text.splitlines()
    assert "Maps of websites." in text


def test_a_link_to_a_snapshot_is_replaced_by_the_page(tmp_path: Path):
    (tmp_path / "page-1.yml").write_text('- heading "Help"\n')
    said = (
        "### Page\n- Page URL: http://shop.example/help\n- Console: 4 errors, 0 warnings\n### Snapshot\n"
        "- [Snapshot](page-1.yml)\n### Events\n- New console entries: console-2026-11-28.log#L1-L4"
    )
    assert readable(said, tmp_path) == (
        '### Page\n- Page URL: http://shop.example/help\n### Snapshot\n```yaml\n- heading "Help"\n```'
    )


def test_a_link_out_of_the_folder_of_the_browser_is_not_followed(tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "pages").mkdir()
    said = "- [Snapshot](../secret)"
    assert readable(said, tmp_path / "pages") == said


def test_a_page_that_is_too_long_is_cut_between_lines(tmp_path: Path):
    line = "- listitem: Buoy"
    (tmp_path / "page-1.yml").write_text(f"{line}\n" * MAX_SNAPSHOT)
    shown = readable("- [Snapshot](page-1.yml)", tmp_path)
    assert shown.endswith(f"{line}\nThe rest is left out; browser_find searches the whole page.\n```")
    assert len(shown) < MAX_SNAPSHOT + 100
    assert LEFT_OUT in with_latest_snapshot([ChatMessage.user(shown), ChatMessage.user(PAGE.format("x"))])[0].text
