"""A plain loop of tool calls, as MCP clients have: all messages are in each request, results of tools are appended."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from waygraph.agents.loop.decision import DeciderOptions
from waygraph.agents.loop.prompt import UNTRUSTED, marked
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.models.chat import ChatMessage, ChatModel
from waygraph.agents.models.structured import parse_reply, request_for
from waygraph.agents.run_record import AgentStep, AttemptEnd
from waygraph.core.errors import BadModelReply, ContextTooLong

#: What stands for a snapshot that is not the latest.
LEFT_OUT = "(An older snapshot was here.)"
_SNAPSHOT = re.compile(r"^```yaml\n.*?^```$", re.MULTILINE | re.DOTALL)
_RULES = """\
You do a task on websites with the tools below. Your reply is one JSON document: either the call of one tool, or the
answer, which ends the task.

Rules:
- Each reply is a step, the answer too, and the number of steps is limited.
- Of the snapshots of pages, this conversation keeps the latest one; older ones are replaced by a line. Write what you
  will need later into "thought". All other messages stay.
- Answer as soon as the task is done. The answer is the information that the task asks for, alone and as short as
  possible, or N/A if the task cannot be done. If the task asks for a page, it is the current one when you answer.
- Change nothing that the task does not ask for. Do not log out. Stay on the sites of the task."""

#: Calls a tool by name and returns its result as text; errors are texts, too.
CallTool = Callable[[str, Mapping[str, JsonValue]], Awaitable[str]]


class ToolReply(BaseModel):
    """The next step: either `tool` and its `arguments`, or `answer`. Write the thought first."""

    # `arguments` are free: servers with OpenAI's strict schemas need `json_mode=object`.
    model_config = ConfigDict(frozen=True, extra="forbid")

    thought: str = Field(description="What the last result says that matters, and why this step.")
    tool: str | None = Field(None, description="Name of a tool.")
    arguments: dict[str, Any] | None = Field(None, description="Its arguments, by its input schema.")
    answer: str | None = Field(None, description="The answer, in place of a tool.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.tool is None) == (self.answer is None):
            raise ValueError("give either tool or answer")
        return self

    @property
    def action(self) -> str:
        """The step as text."""
        if self.answer is not None:
            return f"answer {json.dumps(self.answer, ensure_ascii=False)}"
        return f"{self.tool} {json.dumps(self.arguments or {}, ensure_ascii=False)}"


def system_text(tools: Sequence[Mapping[str, Any]], instructions: str) -> str:
    """Return the instructions of a task: rules, what the servers say about themselves, and their tools."""
    listed = [json.dumps(tool, ensure_ascii=False) for tool in tools]
    parts = [_RULES, UNTRUSTED, instructions, "\n".join(["Tools, one per line:", *listed])]
    return "\n\n".join(part for part in parts if part)


def with_latest_snapshot(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages whose snapshots, except the latest, are replaced by a line."""
    kept: list[ChatMessage] = []
    is_latest = True
    for message in reversed(messages):
        if message.role == "user" and _SNAPSHOT.search(message.text):
            kept.append(message if is_latest else ChatMessage.user(_SNAPSHOT.sub(LEFT_OUT, message.text)))
            is_latest = False
        else:
            kept.append(message)
    return kept[::-1]


async def do_task(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    call: CallTool,
    *,
    max_steps: int,
    on_step: Callable[[AgentStep], None],
) -> tuple[AttemptEnd, str]:
    """Let a model call tools until it answers or its steps are used up.

    Parameters
    ----------
    model
        The model.
    messages
        Instructions, and the task with the page that it starts on.
    call
        Calls a tool.
    max_steps
        Limit of replies.
    on_step
        Called after each.

    Returns
    -------
    tuple of AttemptEnd and str
        Why it ended, and the answer; or the problem, if it failed.

    Raises
    ------
    ModelFailure
        If a call fails.
    """
    meter = UsageMeter(model)
    system, first = messages
    talk = [system, _with_steps_left(first.text, max_steps)]
    for left in reversed(range(max_steps)):
        request = request_for(DeciderOptions().request(with_latest_snapshot(talk)), ToolReply)
        try:
            reply = await meter.complete(request)
        except ContextTooLong as error:
            return AttemptEnd.FAILED, error.message
        chosen: ToolReply | None = None
        try:
            chosen = parse_reply(reply, ToolReply)
        except BadModelReply as error:
            said = error.message
        else:
            said = marked(await call(chosen.tool, chosen.arguments or {})) if chosen.tool is not None else "Answered."
        action, status, thought = (chosen.action, "kept", chosen.thought) if chosen else ("", "invalid", "")
        told = _SNAPSHOT.sub("(snapshot)", said)
        on_step(AgentStep("", "", action, status, told, thinking=thought, usage=meter.take()))
        if chosen is not None and chosen.answer is not None:
            return AttemptEnd.ANSWERED, chosen.answer
        talk += [ChatMessage.assistant(reply.text), _with_steps_left(said, left)]
    return AttemptEnd.STEP_LIMIT, ""


def _with_steps_left(text: str, left: int) -> ChatMessage:
    last = " This is the last one: answer." if left == 1 else ""
    return ChatMessage.user(f"{text}\n\nSteps left: {left}.{last}")
