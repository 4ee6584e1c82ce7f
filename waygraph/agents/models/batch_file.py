"""Files of batch services: many requests to a chat model as one file, and the file of replies that comes back.

The form is that of OpenAI's Batch API: JSON lines, each with a `custom_id` that its reply has too. Others read it as
well, for example `vllm run-batch`, which needs no server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from waygraph.agents.models.chat import ChatReply, ChatRequest
from waygraph.agents.models.request_body import request_body
from waygraph.core.chat_endpoint import ChatCompletion
from waygraph.core.errors import InvalidInput
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import ChatSettings

_ENDPOINT = "/v1/chat/completions"


class _Response(BaseModel):
    status_code: int = 200
    #: A completion if the status is 200; services differ in what they write otherwise.
    body: Any = None


class _ReplyLine(BaseModel):
    custom_id: str
    response: _Response | None
    error: Any = None


def batch_lines(requests: Mapping[str, ChatRequest], settings: ChatSettings) -> Iterator[str]:
    """Yield the lines of a file of requests, in order.

    Parameters
    ----------
    requests
        Requests by the id that their replies get.
    settings
        The model, and the options that its server knows.

    Yields
    ------
    str
        One JSON document, with its line end.
    """
    for custom_id, request in requests.items():
        line = {"custom_id": custom_id, "method": "POST", "url": _ENDPOINT, "body": request_body(request, settings)}
        yield json.dumps(line, ensure_ascii=False) + "\n"


def read_replies(path: Path, settings: ChatSettings) -> dict[str, ChatReply]:
    """Read a file of replies.

    Parameters
    ----------
    path
        The file. Requests that failed, and their lines in files of errors, have no reply.
    settings
        Prices of the model, and its name where a reply names none.

    Returns
    -------
    dict[str, ChatReply]
        Replies by the id of their requests. Of several the last one counts.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or a line has another form.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"The replies in {path} cannot be read: {error.strerror}.", hint="Name a file.") from error
    replies = {}
    # Not `splitlines` of a text: JSON strings may contain other line separators than \n.
    for number, text in enumerate(content.split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            # json reads halves of surrogate pairs, which pydantic refuses and `ChatCompletion` replaces.
            line = _ReplyLine.model_validate(json.loads(text))
            reply = _reply(line, settings)
        except (ValueError, RecursionError) as error:
            problems = error.errors(include_url=False) if isinstance(error, ValidationError) else []
            raise InvalidInput(
                f"Line {number} of {path} is no reply of a batch service: {problems[0]['msg'] if problems else error}.",
                hint="Name the file that the service wrote, not the file of requests.",
            ) from error
        if reply is not None:
            replies[line.custom_id] = reply
    return replies


def _reply(line: _ReplyLine, settings: ChatSettings) -> ChatReply | None:
    """Return the reply of a line; None if the request failed (ValidationError for a completion of another form)."""
    if line.error or line.response is None or line.response.status_code != 200:
        return None
    completion = ChatCompletion.model_validate(line.response.body)
    if not completion.choices:
        return None
    used = completion.usage
    usage = UsageModel(
        model=completion.model or settings.model,
        calls=1,
        input_tokens=used.prompt_tokens,
        output_tokens=used.completion_tokens,
        seconds=0.0,
        cost=settings.cost_of(used.prompt_tokens, used.completion_tokens),
    )
    choice = completion.choices[0]
    return ChatReply(choice.message.content or "", usage, is_cut=choice.finish_reason == "length")
