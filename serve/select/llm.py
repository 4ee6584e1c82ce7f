"""Selector that calls a language model: any OpenAI-compatible model reads the candidates and chooses one, or none.

Texts of pages are untrusted. They are never part of the system message: they are JSON in the user message, between
marks that are random for each request, and the answer's format is a schema with one number. So a page that contains
instructions can at worst make the model choose wrongly.

The model's server is untrusted as well. It has one deadline for all that it does, and of its words only the documented
`reason` reaches callers: of limited length, without control characters.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from waygraph.core.chat_endpoint import ChatCompletion, ChatEndpoint
from waygraph.core.errors import BadModelReply, ContextTooLong, ModelFailure, ModelRejected, ModelUnavailable
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import LlmSettings
from waygraph.core.text import escape_controls, replace_surrogates
from waygraph.serve.select.candidate_prompt import INSTRUCTIONS, CandidateView, candidate_parts
from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery
from waygraph.serve.select.shortlist import FEW, shortlists
from waygraph.serve.select.top1 import Top1Selector

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


#: What callers are told about a failure. The errors may quote the model's server, so only the log has their messages.
_PROBLEMS: dict[type[ModelFailure], str] = {
    ModelUnavailable: "its server is not available",
    ContextTooLong: "the request is too long for it",
    ModelRejected: "its server refused the request",
    BadModelReply: "its server's reply is not of the API's form",
}
_TOO_LATE = "it took too long"


@dataclass(slots=True)
class _Spent:
    """Calls and tokens of one choice."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def count(self, completion: ChatCompletion) -> None:
        self.input_tokens += completion.usage.prompt_tokens
        self.output_tokens += completion.usage.completion_tokens


class LlmSelector:
    """Lets a language model choose among a few candidates, and among all if none of the few fits.

    If it gives no valid answer in time, the best-scored candidate is chosen.

    Parameters
    ----------
    settings
        The model, its limits and its prices.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        # A call can only be ended at any moment, also while a name is resolved or a header drips, on an event loop.
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="language model", daemon=True).start()
        self._endpoint = ChatEndpoint(settings)
        self._first = Top1Selector()

    def choose(self, query: SelectionQuery, candidates: Sequence[RetrievedState]) -> Choice:
        """Choose one of the first candidates (at most as many as configured), or none of them."""
        started = time.monotonic()
        ends_at = min(query.deadline, started + self._settings.timeout_seconds)
        spent, notes = _Spent(), tuple[str, ...]()
        choice: tuple[int | None, str] | None = None
        for shown in shortlists([candidate.hit for candidate in candidates], self._settings.candidates):
            messages = _messages(query, [candidates[index] for index in shown], self._settings)
            asking = self._ask(messages, len(shown), ends_at, spent)
            answer, problem = asyncio.run_coroutine_threadsafe(asking, self._loop).result()
            if answer is None:
                what = "the best score did" if choice is None else f"none but {FEW} were looked at"
                notes = (f"The language model did not choose ({problem}), so {what}.",)
                break
            number, reason = answer
            choice = (None if number is None else shown[number], reason)
            if number is not None:
                break
        usage = self._usage(spent, time.monotonic() - started)
        if choice is None:
            return replace(self._first.choose(query, candidates), notes=notes, usage=usage)
        return Choice(choice[0], "llm", choice[1], notes, usage)

    async def _ask(
        self, messages: list[Any], candidates: int, ends_at: float, spent: _Spent
    ) -> tuple[tuple[int | None, str] | None, str]:
        """Return the number (from 0) and the reason of the model's answer, or None and what is wrong."""
        problem, tries = _TOO_LATE, 0
        while tries <= self._settings.retries and (seconds_left := ends_at - time.monotonic()) > 0:
            tries += 1
            spent.calls += 1
            try:
                completion = await self._complete(messages, seconds_left)
            except ModelFailure as error:
                log.warning("the language model did not answer: %s", error)
                problem = _TOO_LATE if time.monotonic() >= ends_at else _PROBLEMS[type(error)]
                if isinstance(error, ModelRejected):
                    break  # the same request is refused again
                continue
            spent.count(completion)
            text = completion.choices[0].message.content or ""
            choice, problem = _parse_choice(text, candidates)
            if choice is not None:
                return choice, ""
            log.warning("the answer of the language model is not valid: %s", problem)
            again = f"That is no valid answer: {problem}. Answer again, in the given format."
            messages += [{"role": "assistant", "content": text}, {"role": "user", "content": again}]
        return None, problem

    async def _complete(self, messages: list[Any], timeout_seconds: float) -> ChatCompletion:
        request: dict[str, Any] = {
            "model": self._settings.model,
            "messages": messages,
            "response_format": _ANSWER_FORMAT,
            "temperature": 0,
        }
        return await self._endpoint.complete(request, timeout_seconds)

    def _usage(self, spent: _Spent, seconds: float) -> UsageModel:
        return UsageModel(
            model=self._settings.model,
            calls=spent.calls,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            seconds=round(seconds, 3),
            cost=self._settings.cost_of(spent.input_tokens, spent.output_tokens),
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
        number, reason = answer["choice"], answer["reasoning"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None, "it is not the requested JSON object"
    if not isinstance(reason, str):
        return None, "its reasoning is not a text"
    reason = escape_controls(" ".join(replace_surrogates(reason[:MAX_REASON]).split()))[:MAX_REASON]
    if number is None:
        return (None, reason), ""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= candidates:
        return None, f"its choice is no number from 1 to {candidates}"
    return (number - 1, reason), ""
