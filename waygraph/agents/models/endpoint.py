"""A chat model behind any OpenAI-compatible API: hosted, vLLM, Ollama.

Calls are retried for passing reasons only (no connection, a timeout, 408, 409, 429, 5xx), with waits that double, are
spread at random, and are as long as `Retry-After` says. Everything else is an error of its own class at once. What
went wrong is read from types, statuses and codes, never from messages.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from dataclasses import dataclass
from typing import Any

from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI
from openai.types.chat import ChatCompletion

from waygraph.agents.models.chat import ChatReply, ChatRequest, TokenLogprob
from waygraph.agents.models.request_body import request_body
from waygraph.core.errors import BadModelReply, ContextTooLong, ModelFailure, ModelRejected, ModelUnavailable
from waygraph.core.retry_after import parse_retry_after
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import ChatSettings
from waygraph.core.text import replace_surrogates

#: Statuses that a later call may not get.
_PASSING_STATUSES = {408, 409, 429}
#: Codes of errors that waiting does not remove, although their status is a passing one.
_LASTING_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
#: Codes of a request that is too long: OpenAI's, and that of llama.cpp and others.
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}


@dataclass(frozen=True, slots=True)
class _Failed:
    """A call that failed.

    Attributes
    ----------
    error
        The failure, as the caller gets it.
    may_pass
        Whether the same call may succeed later.
    wait_s
        Seconds to wait, if the server said so.
    """

    error: ModelFailure
    may_pass: bool
    wait_s: float | None = None


class EndpointModel:
    """A model behind an API. One object may be used by many tasks at a time, in one event loop.

    Parameters
    ----------
    settings
        The model, its limits and its prices.
    """

    def __init__(self, settings: ChatSettings) -> None:
        self._settings = settings
        self._free = asyncio.Semaphore(settings.concurrency)
        self._client = AsyncOpenAI(
            base_url=settings.base_url or None,
            # The client requires a key, private servers often do not.
            api_key=settings.api_key.get_secret_value() or os.environ.get("OPENAI_API_KEY") or "none",
            timeout=settings.timeout_seconds,
            max_retries=0,  # `complete` retries, and says how often
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request; see `ChatModel.complete`."""
        body = request_body(request, self._settings)
        async with self._free:
            started, calls = time.monotonic(), 0
            while True:
                calls += 1
                answer = await self._call(body)
                if isinstance(answer, ChatCompletion):
                    return self._reply(answer, calls, time.monotonic() - started)
                wait_s = self._wait_s(calls, answer)
                if wait_s is None:
                    raise answer.error
                await asyncio.sleep(wait_s)

    def _wait_s(self, calls: int, failed: _Failed) -> float | None:
        """Return the seconds to wait before the next call; None: there is none."""
        if not failed.may_pass or calls > self._settings.retries:
            return None
        if failed.wait_s is not None:
            return failed.wait_s if failed.wait_s <= self._settings.longest_wait_seconds else None
        longest = min(self._settings.longest_wait_seconds, self._settings.backoff_seconds * 2.0 ** (calls - 1))
        return longest * random.uniform(0.5, 1)  # noqa: S311 - spreads calls, secures nothing

    async def _call(self, body: dict[str, Any]) -> ChatCompletion | _Failed:
        settings = self._settings
        place = f"The model '{settings.model}' at {self._client.base_url}"
        try:
            async with asyncio.timeout(settings.timeout_seconds):
                completion = await self._client.chat.completions.create(**body)
        except (TimeoutError, APITimeoutError):
            error = ModelUnavailable(
                f"{place} did not answer within {settings.timeout_seconds:g} s.", hint="Raise timeout_seconds."
            )
            return _Failed(error, may_pass=True)
        except APIConnectionError as cause:
            error = ModelUnavailable(
                f"{place} cannot be reached: {type(cause.__cause__ or cause).__name__}.",
                hint="Check that it runs, and base_url.",
            )
            return _Failed(error, may_pass=True)
        except APIStatusError as cause:
            return _failed_status(cause, place)
        except (APIError, json.JSONDecodeError) as cause:
            return _Failed(_bad_reply(place, type(cause).__name__), may_pass=False)
        # The client returns the text of a body that is not declared as JSON, and does not validate one that is.
        if not isinstance(completion, ChatCompletion):
            return _Failed(_bad_reply(place, "the body is not JSON"), may_pass=False)
        if not completion.choices or completion.choices[0].message is None:
            return _Failed(_bad_reply(place, "it has no choices"), may_pass=False)
        return completion

    def _reply(self, completion: ChatCompletion, calls: int, seconds: float) -> ChatReply:
        choice, used = completion.choices[0], completion.usage
        input_tokens = used.prompt_tokens if used is not None else 0
        output_tokens = used.completion_tokens if used is not None else 0
        content = choice.logprobs.content if choice.logprobs is not None else None
        logprobs = None
        if content is not None:
            logprobs = tuple(
                TokenLogprob(
                    each.token, each.logprob, tuple((top.token, top.logprob) for top in each.top_logprobs or ())
                )
                for each in content
            )
        usage = UsageModel(
            model=self._settings.model,
            calls=calls,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            seconds=round(seconds, 3),
            cost=self._settings.cost_of(input_tokens, output_tokens),
        )
        text = replace_surrogates(choice.message.content or "")
        return ChatReply(text, usage, logprobs, is_cut=choice.finish_reason == "length")


def _failed_status(cause: APIStatusError, place: str) -> _Failed:
    status, code = cause.status_code, str(cause.code or "")
    wait_s = parse_retry_after(cause.response.headers.get("retry-after", ""), time.time())
    said = f"{place} answered {status}{f' ({code})' if code else ''}"
    if (status in _PASSING_STATUSES or status >= 500) and code not in _LASTING_CODES:
        hint = "Lower concurrency, or ask later." if status == 429 else "Ask later."
        return _Failed(ModelUnavailable(f"{said}.", hint=hint, retry_after_s=wait_s), may_pass=True, wait_s=wait_s)
    if status == 413 or code in _TOO_LONG_CODES:
        return _Failed(ContextTooLong(f"{said}: the request is too long.", hint="Send less."), may_pass=False)
    hint = "Check the API key." if status in {401, 403} else "Check the name of the model and the options."
    return _Failed(ModelRejected(f"{said}: {cause.message}", hint=hint), may_pass=False)


def _bad_reply(place: str, reason: str) -> BadModelReply:
    return BadModelReply(f"{place} did not reply as the API says: {reason}.", hint="Check base_url: it ends in /v1.")
