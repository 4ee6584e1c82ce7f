"""Calls to a chat completions API of a model's server, which is not trusted: it may hang, drip, or answer anything.

One deadline bounds a whole call (connecting, sending, every byte of the reply), and the reply has a size limit. A reply
is read as the API says, or it is a `BadModelReply`. What went wrong is read from types, statuses and codes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

import httpx
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from waygraph.core.errors import BadModelReply, ContextTooLong, ModelFailure, ModelRejected, ModelUnavailable
from waygraph.core.retry_after import parse_retry_after
from waygraph.core.settings import ModelEndpoint
from waygraph.core.text import escape_controls, replace_surrogates, shortened

#: Limit of a reply, in bytes. Log probabilities of a few thousand tokens are the largest part of any.
MAX_REPLY_BYTES = 8 * 2**20
#: Limit of a server's message in an error, in characters.
_MAX_MESSAGE = 300
#: Where requests go if the settings name no server, as in the client libraries of this API.
_DEFAULT_URL = "https://api.openai.com/v1"

#: Statuses that a later call may not get.
_PASSING_STATUSES = {408, 409, 429}
#: Codes of errors that waiting does not remove, although their status is a passing one.
_LASTING_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
#: Codes of a request that is too long: OpenAI's, and that of llama.cpp and others.
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_CODE = re.compile(r"[\w.-]{1,64}")

#: Text that may hold halves of surrogate pairs, which JSON can express and UTF-8 cannot.
_Text = Annotated[str, BeforeValidator(lambda text: replace_surrogates(text) if isinstance(text, str) else text)]


class _Message(BaseModel):
    content: _Text | None = None


class _Alternative(BaseModel):
    token: _Text
    logprob: float


class _TokenLogprob(_Alternative):
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(BaseModel):
    content: list[_TokenLogprob] | None = None


class ChatChoice(BaseModel):
    """One answer of a completion."""

    message: _Message
    finish_reason: _Text | None = None
    logprobs: _Logprobs | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)


class ChatCompletion(BaseModel):
    """What a server replies; fields that are not listed are ignored."""

    model: _Text | None = None
    choices: list[ChatChoice] = []
    usage: Annotated[_Usage, BeforeValidator(lambda usage: {} if usage is None else usage)] = _Usage()


class ChatEndpoint:
    """A server with a chat completions API. Use it in one event loop.

    Parameters
    ----------
    settings
        Address, key and model.
    """

    def __init__(self, settings: ModelEndpoint) -> None:
        base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or _DEFAULT_URL
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._place = f"The model '{settings.model}' at {base_url}"
        key = settings.api_key.get_secret_value() or os.environ.get("OPENAI_API_KEY", "")
        # A compressed reply could become a thousand times as large as what was received.
        headers = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        # Timeouts of single operations would start anew with every byte; `complete` has one for all of them.
        self._client = httpx.AsyncClient(headers=headers, timeout=None, follow_redirects=False)  # noqa: S113

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def complete(self, body: Mapping[str, Any], seconds: float) -> ChatCompletion:
        """Make one call.

        Parameters
        ----------
        body
            The request, as the API has it.
        seconds
            Time limit of the call, in seconds.

        Returns
        -------
        ChatCompletion
            The reply.

        Raises
        ------
        ModelUnavailable
            If the server is down, too slow, overloaded or limits the rate: a later call may succeed.
        ModelRejected
            If it refuses the request; `ContextTooLong` if the request is too long.
        BadModelReply
            If the reply is not what the API says, or too large.
        """
        content = json.dumps(body).encode()  # ASCII: halves of surrogate pairs are escaped
        try:
            async with asyncio.timeout(seconds), self._client.stream("POST", self._url, content=content) as response:
                reply = await self._read(response)
        except TimeoutError as cause:
            raise ModelUnavailable(
                f"{self._place} did not answer within {seconds:g} s.", hint="Raise timeout_seconds."
            ) from cause
        except (httpx.HTTPError, httpx.InvalidURL) as cause:
            raise ModelUnavailable(
                f"{self._place} cannot be reached: {type(cause).__name__}.", hint="Check that it runs, and base_url."
            ) from cause
        if not response.is_success:
            raise self._failure(response, reply)
        try:
            completion = ChatCompletion.model_validate(json.loads(reply))
        except ValidationError as cause:
            field = ".".join(map(str, cause.errors()[0]["loc"])) or "it"
            raise self._bad_reply(f"{field} has another form") from cause
        except (ValueError, RecursionError) as cause:
            raise self._bad_reply("the body is not JSON") from cause
        if not completion.choices:
            raise self._bad_reply("it has no choices")
        return completion

    async def _read(self, response: httpx.Response) -> bytes:
        if (encoding := response.headers.get("content-encoding", "identity")) != "identity":
            raise self._bad_reply(f"the body is encoded as {shortened(escape_controls(encoding), 20)}")
        received = bytearray()
        async for chunk in response.aiter_raw():
            received += chunk
            if len(received) > MAX_REPLY_BYTES:
                raise self._bad_reply(f"it has more than {MAX_REPLY_BYTES} bytes")
        return bytes(received)

    def _failure(self, response: httpx.Response, reply: bytes) -> ModelFailure:
        status, (code, message) = response.status_code, _error_of(reply)
        said = f"{self._place} answered {status}{f' ({code})' if code else ''}"
        if (status in _PASSING_STATUSES or status >= 500) and code not in _LASTING_CODES:
            wait_s = parse_retry_after(response.headers.get("retry-after", ""), time.time())
            hint = "Lower concurrency, or ask later." if status == 429 else "Ask later."
            return ModelUnavailable(f"{said}.", hint=hint, retry_after_s=wait_s)
        if status == 413 or code in _TOO_LONG_CODES:
            return ContextTooLong(f"{said}: the request is too long.", hint="Send less.")
        hint = "Check the API key." if status in {401, 403} else "Check base_url, the name of the model, the options."
        return ModelRejected(f"{said}{f': {message}' if message else '.'}", hint=hint)

    def _bad_reply(self, reason: str) -> BadModelReply:
        return BadModelReply(
            f"{self._place} did not reply as the API says: {reason}.", hint="Check base_url: it ends in /v1."
        )


def _error_of(reply: bytes) -> tuple[str, str]:
    """Return the code and the message of an error of the API; empty texts if the reply has another form."""
    try:
        error = json.loads(reply)["error"]
        code, message = error.get("code"), error.get("message")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "", ""
    known = isinstance(code, str) and _CODE.fullmatch(code)
    shown = " ".join(message.split()) if isinstance(message, str) else ""
    return code if known else "", escape_controls(shortened(shown, _MAX_MESSAGE))
