"""A chat model behind any OpenAI-compatible API: hosted, vLLM, Ollama.

Calls are retried for passing reasons only (no connection, a timeout, 408, 409, 429, 5xx), with waits that double, are
spread at random, and are as long as `Retry-After` says. Everything else is an error of its own class at once.
"""

from __future__ import annotations

import asyncio
import random
import time

from waygraph.agents.models.chat import ChatReply, ChatRequest, TokenLogprob
from waygraph.agents.models.request_body import request_body
from waygraph.core.chat_endpoint import ChatCompletion, ChatEndpoint
from waygraph.core.errors import ModelUnavailable
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import ChatSettings


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
        self._endpoint = ChatEndpoint(settings)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request; see `ChatModel.complete`."""
        body = request_body(request, self._settings)
        async with self._free:
            started, calls = time.monotonic(), 0
            while True:
                calls += 1
                try:
                    completion = await self._endpoint.complete(body, self._settings.timeout_seconds)
                except ModelUnavailable as error:
                    wait_s = self._wait_s(calls, error)
                    if wait_s is None:
                        raise
                    await asyncio.sleep(wait_s)
                else:
                    return self._reply(completion, calls, time.monotonic() - started)

    def _wait_s(self, calls: int, failed: ModelUnavailable) -> float | None:
        """Return the seconds to wait before the next call; None: there is none."""
        if calls > self._settings.retries:
            return None
        if failed.retry_after_s:
            return failed.retry_after_s if failed.retry_after_s <= self._settings.longest_wait_seconds else None
        longest = min(self._settings.longest_wait_seconds, self._settings.backoff_seconds * 2.0 ** (calls - 1))
        return longest * random.uniform(0.5, 1)  # noqa: S311 - spreads calls, secures nothing

    def _reply(self, completion: ChatCompletion, calls: int, seconds: float) -> ChatReply:
        choice, used = completion.choices[0], completion.usage
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
            input_tokens=used.prompt_tokens,
            output_tokens=used.completion_tokens,
            seconds=round(seconds, 3),
            cost=self._settings.cost_of(used.prompt_tokens, used.completion_tokens),
        )
        return ChatReply(choice.message.content or "", usage, logprobs, is_cut=choice.finish_reason == "length")
