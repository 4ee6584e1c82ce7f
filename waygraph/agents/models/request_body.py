"""A request in the form of the chat completions API, as a call or as a line of a batch file sends it."""

from __future__ import annotations

import base64
import json
from typing import Any

from waygraph.agents.models.chat import ChatMessage, ChatRequest, ImagePart
from waygraph.core.settings import ChatSettings
from waygraph.core.text import replace_surrogates


def request_body(request: ChatRequest, settings: ChatSettings) -> dict[str, Any]:
    """Return the body of a call to `/v1/chat/completions`.

    Parameters
    ----------
    request
        The request.
    settings
        The model, and the options that its server knows.

    Returns
    -------
    dict[str, Any]
        JSON.
    """
    messages = [_message(message) for message in request.messages]
    body: dict[str, Any] = {"model": settings.model, "messages": messages}
    if request.temperature is not None and settings.send_temperature:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.max_tokens is not None:
        body[settings.token_limit_field] = request.max_tokens
    if request.seed is not None:
        body["seed"] = request.seed
    if request.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    if (form := request.json_format) is not None:
        if settings.json_mode == "schema":
            named = {"name": form.name, "strict": True, "schema": dict(form.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        else:
            words = f"Reply with one JSON document of this schema, and nothing else: {json.dumps(form.schema)}"
            messages.append({"role": "system", "content": words})
        if settings.json_mode == "object":
            body["response_format"] = {"type": "json_object"}
    return body


def _message(message: ChatMessage) -> dict[str, Any]:
    if len(message.parts) == 1 and isinstance(message.parts[0], str):
        return {"role": message.role, "content": replace_surrogates(message.parts[0])}
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: str | ImagePart) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": replace_surrogates(part)}
    url = f"data:{part.media_type};base64,{base64.b64encode(part.content).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}
