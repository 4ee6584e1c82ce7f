"""Selector that calls a language model: any OpenAI-compatible model reads the candidates and chooses one, or none.

Texts of pages are untrusted. They are never part of the system message: they are JSON in the user message, between
marks that are random for each request, and the answer's format is a schema with one number. So a page that contains
instructions can at worst make the model choose wrongly.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import secrets
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openai import OpenAI, OpenAIError

from waygraph.core.schemas import UsageModel
from waygraph.core.settings import LlmSettings
from waygraph.serve.select.candidate_prompt import INSTRUCTIONS, CandidateView, candidate_parts
from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

log = logging.getLogger("ray.serve.waygraph")

_ANSWER_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "choice",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"reasoning": {"type": "string"}, "choice": {"type": ["integer", "null"]}},
            "required": ["reasoning", "choice"],
            "additionalProperties": False,
        },
    },
}

#: Longest part of the model's reasoning that an answer contains, in characters.
MAX_REASON = 1_000


class LlmSelector:
    """Lets a language model choose. If it gives no valid answer in time, the best-scored candidate is chosen.

    Parameters
    ----------
    settings
        The model, its limits and its prices.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._client = OpenAI(
            base_url=settings.base_url or None,
            # The client requires a key, private servers often do not.
            api_key=settings.api_key.get_secret_value() or os.environ.get("OPENAI_API_KEY") or "none",
            timeout=settings.timeout_seconds,
            max_retries=0,  # `choose` retries, within one deadline for all attempts
        )

    def choose(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> Choice:
        """Choose one of the first candidates (as many as configured), or none of them."""
        shown = candidates[: self._settings.candidates]
        messages = _messages(query, shown, self._settings)
        started, calls, input_tokens, output_tokens = time.monotonic(), 0, 0, 0
        problem, choice = "", None
        while choice is None and calls <= self._settings.retries:
            seconds_left = self._settings.timeout_seconds - (time.monotonic() - started)
            if seconds_left <= 0:
                problem = problem or "it took too long"
                break
            calls += 1
            try:
                completion = self._complete(messages, seconds_left)
            except OpenAIError as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            if completion.usage is not None:
                input_tokens += completion.usage.prompt_tokens
                output_tokens += completion.usage.completion_tokens
            text = (completion.choices[0].message.content or "") if completion.choices else ""
            choice, problem = _parse_choice(text, len(shown))
            if choice is None:
                messages += [
                    {"role": "assistant", "content": text},
                    {
                        "role": "user",
                        "content": f"That is no valid answer: {problem}. Answer again, in the given format.",
                    },
                ]
        usage = self._usage(calls, input_tokens, output_tokens, time.monotonic() - started)
        if choice is None:
            log.warning("the language model did not choose: %s", problem)
            first = candidates[0].hit
            return Choice(
                0,
                "top1",
                f"It scores best ({first.score:.3f}) of {len(candidates)}.",
                (f"The language model did not choose ({problem}), so the best score did.",),
                usage,
            )
        index, reason = choice
        return Choice(index, "llm", reason, usage=usage)

    def _complete(self, messages: list[Any], timeout_seconds: float) -> ChatCompletion:
        request: dict[str, Any] = {
            "model": self._settings.model,
            "messages": messages,
            "response_format": _ANSWER_FORMAT,
            "temperature": 0,
        }
        completion: ChatCompletion = self._client.chat.completions.create(**request, timeout=timeout_seconds)
        return completion

    def _usage(self, calls: int, input_tokens: int, output_tokens: int, seconds: float) -> UsageModel:
        return UsageModel(
            model=self._settings.model,
            calls=calls,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            seconds=round(seconds, 3),
            cost=self._settings.cost_of(input_tokens, output_tokens),
        )


def _messages(query: SelectionQuery, candidates: Sequence[RetrievedState], settings: LlmSettings) -> list[Any]:
    parts: list[dict[str, Any]] = []
    view = CandidateView(settings.text_chars, settings.image_px)
    for part in candidate_parts(query, candidates, mark=secrets.token_hex(8), view=view):
        if isinstance(part, str):
            parts.append({"type": "text", "text": part})
        else:
            url = f"data:image/jpeg;base64,{base64.b64encode(part).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": parts}]


def _parse_choice(text: str, candidates: int) -> tuple[tuple[int | None, str] | None, str]:
    """Return the index and the reason that an answer gives, or None and what is wrong with the answer."""
    try:
        answer = json.loads(text)
        number, reason = answer["choice"], str(answer["reasoning"])[:MAX_REASON]
    except (ValueError, TypeError, KeyError) as error:
        return None, f"it is not the requested JSON object ({type(error).__name__})"
    if number is None:
        return (None, reason), ""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= candidates:
        return None, f"there is no candidate {number!r}"
    return (number - 1, reason), ""
