"""Answers in the format of WebArena-Verified 1.2: `agent_response.json`.

Its fields are the kind of task (`task_type`), the outcome (`status`), the items that were found (`retrieved_data`) and
why the task was not done (`error_details`).
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, field_validator

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.tasks.task import UNACHIEVABLE

if TYPE_CHECKING:
    from waygraph.agents.scoring.run_folder import TaskAnswer

_CODE_BLOCK = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


class TaskType(StrEnum):
    """What a task asks for."""

    RETRIEVE = "RETRIEVE"
    MUTATE = "MUTATE"
    NAVIGATE = "NAVIGATE"


class ResponseStatus(StrEnum):
    """How a task ended."""

    SUCCESS = "SUCCESS"
    ACTION_NOT_ALLOWED_ERROR = "ACTION_NOT_ALLOWED_ERROR"
    PERMISSION_DENIED_ERROR = "PERMISSION_DENIED_ERROR"
    NOT_FOUND_ERROR = "NOT_FOUND_ERROR"
    DATA_VALIDATION_ERROR = "DATA_VALIDATION_ERROR"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


class AgentResponse(BaseModel):
    """The file `agent_response.json`.

    Attributes
    ----------
    task_type
        What the task asked for, as the agent understood it.
    status
        How it ended.
    retrieved_data
        What was found; None unless the task asks for it.
    error_details
        Why the task was not done; None if it was.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    task_type: TaskType
    status: ResponseStatus
    retrieved_data: list[JsonValue] | None = None
    error_details: str | None = None

    @field_validator("task_type", "status", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


def agent_response(answer: TaskAnswer, *, changed_data: bool) -> AgentResponse:
    """Return a stored answer as a response.

    An answer that is such a JSON document already, alone or in a code block, is used as it is. From another one the
    kind of the task is concluded, since the task as an agent gets it does not say it: an answer means that something
    was to be found, none that a page was to be opened, or, if requests may have changed data, that these changes were
    wanted.

    Parameters
    ----------
    answer
        What the agent left.
    changed_data
        Whether any of its requests may have changed data.

    Returns
    -------
    AgentResponse
        The response.
    """
    if (given := _given_response(answer.answer)) is not None:
        return given
    text = answer.answer.strip()
    without_answer = TaskType.MUTATE if changed_data else TaskType.NAVIGATE
    # An answer counts however the agent ended, as it does in `waygraph score`.
    if not text and answer.ended is not AttemptEnd.ANSWERED:
        why = answer.problem or f"The agent stopped: {answer.ended}."
        return AgentResponse(task_type=without_answer, status=ResponseStatus.UNKNOWN_ERROR, error_details=why)
    if text.upper() == UNACHIEVABLE:
        kind = TaskType.MUTATE if changed_data else TaskType.RETRIEVE
        why = "The agent answered that the task is impossible."
        return AgentResponse(task_type=kind, status=ResponseStatus.NOT_FOUND_ERROR, error_details=why)
    if not text:
        return AgentResponse(task_type=without_answer, status=ResponseStatus.SUCCESS)
    items = _items(text)
    return AgentResponse(task_type=TaskType.RETRIEVE, status=ResponseStatus.SUCCESS, retrieved_data=items)


def _given_response(text: str) -> AgentResponse | None:
    """Return the response that an answer states; None: it states none."""
    block = _CODE_BLOCK.search(text)
    try:
        return AgentResponse.model_validate_json(block[1] if block is not None else text)
    except ValidationError:
        return None


def _items(text: str) -> list[JsonValue]:
    try:
        items = json.loads(text)
    except ValueError:
        return [text]
    return items if isinstance(items, list) else [text]
