"""Replies as typed records: a JSON schema in the request, validation of the reply, and one try to repair it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatReply, ChatRequest, JsonFormat, add_usage
from waygraph.core.errors import BadModelReply
from waygraph.core.text import escape_controls, shortened

Record = TypeVar("Record", bound=BaseModel)

#: Number of problems with a reply that the model is told, and limit of their text, which may quote the reply.
_SHOWN_PROBLEMS, _PROBLEM_CHARS = 5, 500


async def complete_as(model: ChatModel, request: ChatRequest, record: type[Record]) -> tuple[Record, ChatReply]:
    """Return the reply to a request as a record. A reply that does not match is sent back once.

    Parameters
    ----------
    model
        The model.
    request
        The request; its form of the reply is replaced by the record's schema.
    record
        Pydantic model of the reply. For servers with strict schemas it forbids further fields and has no defaults.

    Returns
    -------
    tuple of record and ChatReply
        The record, and the last reply with the usage of all calls.

    Raises
    ------
    BadModelReply
        If the second reply does not match either.
    ModelFailure
        If a call fails.
    """
    asked = request_for(request, record)
    reply = await model.complete(asked)
    try:
        return record.model_validate_json(_without_fence(reply.text)), reply
    except ValidationError as error:
        problem = _problem(error)
    repair = ChatMessage.user(f"That reply does not match the requested JSON schema: {problem}. Reply again.")
    again = await model.complete(replace(asked, messages=(*asked.messages, ChatMessage.assistant(reply.text), repair)))
    usage = add_usage(reply.usage, again.usage)
    try:
        return record.model_validate_json(_without_fence(again.text)), replace(again, usage=usage)
    except ValidationError as error:
        cut = " It ends at the limit of tokens." if again.is_cut else ""
        raise BadModelReply(
            f"The model '{usage.model}' did not reply in the requested form, twice: {_problem(error)}.{cut}",
            hint="Choose a model that can follow a JSON schema, or allow longer replies.",
        ) from error


def request_for(request: ChatRequest, record: type[BaseModel]) -> ChatRequest:
    """Return a request whose reply has the form of a record."""
    return replace(request, json_format=JsonFormat(record.__name__, _without_notes(record.model_json_schema())))


def _without_notes(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema without generated titles and limits of length: tokens in every request; replies are validated."""
    if isinstance(schema, dict):
        left = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
        return {key: _without_notes(value) for key, value in left.items() if key != "maxLength"}
    return [_without_notes(each) for each in schema] if isinstance(schema, list) else schema


def parse_reply(reply: ChatReply, record: type[Record]) -> Record:
    """Return a reply as a record (BadModelReply if it has another form).

    For replies that cannot be asked for again; `complete_as` asks once more.
    """
    try:
        return record.model_validate_json(_without_fence(reply.text))
    except ValidationError as error:
        cut = " It ends at the limit of tokens." if reply.is_cut else ""
        raise BadModelReply(
            f"The reply is not of the requested form: {_problem(error)}.{cut}", hint="Ask about it again."
        ) from error


def _without_fence(text: str) -> str:
    """Return a reply without the Markdown fence that some models put around JSON."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped.partition("\n")[2].removesuffix("```")
    return stripped


def _problem(error: ValidationError) -> str:
    parts = []
    for each in error.errors()[:_SHOWN_PROBLEMS]:
        where = ".".join(str(part) for part in each["loc"])
        parts.append(f"{where}: {each['msg']}" if where else each["msg"])
    return shortened(escape_controls("; ".join(parts)), _PROBLEM_CHARS)
