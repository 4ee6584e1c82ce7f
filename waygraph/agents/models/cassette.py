"""Recordings of model calls: a call that was made once is answered from the file, without the model.

A file has one JSON document per line: the hash of a request, the request for readers, and the reply. Secrets are
replaced before anything is hashed or written, images are kept as hashes, and API keys are no part of a request.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from waygraph.agents.models.chat import ChatModel, ChatReply, ChatRequest, ImagePart, TokenLogprob
from waygraph.core.errors import CassetteMiss, InvalidInput
from waygraph.core.schemas import UsageModel
from waygraph.core.text import replace_surrogates

#: What secrets are replaced with.
REDACTED = "[secret]"


class _RecordedToken(BaseModel):
    token: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()


class _RecordedCall(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    key: str
    request: dict[str, JsonValue]
    text: str
    usage: UsageModel
    logprobs: tuple[_RecordedToken, ...] | None = None
    is_cut: bool = False


class CassetteModel:
    """A recording, with or without a model to record more.

    Equal requests have one reply. To get several samples for one prompt, give requests different seeds.

    Parameters
    ----------
    path
        The file. It is created with the first call that is recorded.
    model
        The model that answers what is not recorded; None: such a request is an error.
    secrets
        Texts that are replaced in requests and replies.

    Raises
    ------
    InvalidInput
        If the file is not a recording.
    """

    def __init__(self, path: Path, model: ChatModel | None = None, *, secrets: Sequence[str] = ()) -> None:
        self._path = path
        self._model = model
        # Longer ones first: one secret may be a part of another.
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._calls, self._complete_bytes = _read_calls(path) if path.exists() else ({}, 0)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the recorded reply, or ask the model and record; see `ChatModel.complete`."""
        readable = self._readable(request)
        key = hashlib.sha256(json.dumps(readable, sort_keys=True).encode()).hexdigest()
        if (call := self._calls.get(key)) is not None:
            tokens = call.logprobs
            logprobs = None if tokens is None else tuple(TokenLogprob(**dict(token)) for token in tokens)
            return ChatReply(call.text, call.usage, logprobs, call.is_cut)
        if self._model is None:
            raise CassetteMiss(
                f"The recording '{self._path}' has no reply to this request ({key[:12]}).",
                hint="Record it again with the model, or restore the prompt.",
            )
        reply = await self._model.complete(request)
        self._record(key, readable, reply)
        return reply

    def _record(self, key: str, readable: dict[str, Any], reply: ChatReply) -> None:
        tokens = None
        if reply.logprobs is not None:
            tokens = tuple(
                _RecordedToken(
                    token=self._redacted(each.token),
                    logprob=each.logprob,
                    alternatives=tuple((self._redacted(token), value) for token, value in each.alternatives),
                )
                for each in reply.logprobs
            )
        call = _RecordedCall(
            key=key,
            request=readable,
            text=self._redacted(reply.text),
            usage=reply.usage,
            logprobs=tokens,
            is_cut=reply.is_cut,
        )
        self._calls[key] = call
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = call.model_dump_json().encode() + b"\n"
        with self._path.open("r+b" if self._path.exists() else "wb") as file:
            file.truncate(self._complete_bytes)
            file.seek(self._complete_bytes)
            file.write(line)
        self._complete_bytes += len(line)

    def _readable(self, request: ChatRequest) -> dict[str, Any]:
        """Return a request as plain data: without secrets, and with hashes of images."""
        messages = [
            {"role": message.role, "parts": [self._readable_part(part) for part in message.parts]}
            for message in request.messages
        ]
        form = request.json_format
        return {
            "messages": messages,
            "json_format": None if form is None else {"name": form.name, "schema": dict(form.schema)},
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_tokens": request.max_tokens,
            "top_logprobs": request.top_logprobs,
            "seed": request.seed,
        }

    def _readable_part(self, part: str | ImagePart) -> str | dict[str, str]:
        if isinstance(part, str):
            return self._redacted(part)
        return {"image": hashlib.sha256(part.content).hexdigest(), "media_type": part.media_type}

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return replace_surrogates(text)


def _read_calls(path: Path) -> tuple[dict[str, _RecordedCall], int]:
    """Return the calls in a file, and the number of its bytes that are complete lines.

    A last line without an end is what a killed process left. It is not read, and the next call replaces it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"The recording '{path}' cannot be read: {error.strerror}.", hint="Check the path."
        ) from error
    complete = content.rfind(b"\n") + 1
    calls: dict[str, _RecordedCall] = {}
    for number, line in enumerate(content[:complete].splitlines(), 1):
        try:
            call = _RecordedCall.model_validate_json(line)
        except ValidationError as error:
            raise InvalidInput(
                f"Line {number} of the recording '{path}' is not a recorded call.", hint="Restore it, or record again."
            ) from error
        calls.setdefault(call.key, call)
    return calls, complete
