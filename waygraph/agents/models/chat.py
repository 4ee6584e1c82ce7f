"""The protocol of chat models: a request of texts and images in, a text with its usage out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from waygraph.core.schemas import UsageModel


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image of a message.

    Attributes
    ----------
    content
        The encoded image.
    media_type
        Its type, such as `image/png`.
    """

    content: bytes
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a conversation.

    Attributes
    ----------
    role
        Who says it.
    parts
        Texts and images, in order.
    """

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | ImagePart, ...]

    @classmethod
    def system(cls, text: str) -> ChatMessage:
        """Return instructions that precede the conversation."""
        return cls("system", (text,))

    @classmethod
    def user(cls, *parts: str | ImagePart) -> ChatMessage:
        """Return a message to the model."""
        return cls("user", parts)

    @classmethod
    def assistant(cls, text: str) -> ChatMessage:
        """Return a message of the model."""
        return cls("assistant", (text,))

    @property
    def text(self) -> str:
        """The texts of the message, joined by line breaks."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The form of a reply that is a JSON document.

    Attributes
    ----------
    name
        Name of the form: letters, digits, `_` and `-`.
    schema
        JSON schema.
    """

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A question to a chat model.

    Attributes
    ----------
    messages
        The conversation so far.
    json_format
        Form of the reply; None: any text.
    temperature
        Temperature of sampling; 0: the likeliest tokens; None: the server's default.
    top_p
        Share of the probability mass that tokens are sampled from; None: the server's default.
    max_tokens
        Limit of the reply, in tokens; None: the server's default.
    top_logprobs
        Number of alternatives per token whose log probabilities are wanted; 0: no log probabilities.
    seed
        Seed of sampling; None: none. Requests with equal seeds are equal to a recording.
    """

    messages: tuple[ChatMessage, ...]
    json_format: JsonFormat | None = None
    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = None
    top_logprobs: int = 0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token of a reply.

    Attributes
    ----------
    token
        The token.
    logprob
        Natural logarithm of its probability.
    alternatives
        The likeliest tokens at this place, with their logarithms.
    """

    token: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply of a chat model.

    Attributes
    ----------
    text
        The reply.
    usage
        What it took: calls, tokens, seconds, price.
    logprobs
        Tokens with log probabilities; None if the server gave none.
    is_cut
        Whether the reply ends at the limit of tokens.
    """

    text: str
    usage: UsageModel
    logprobs: tuple[TokenLogprob, ...] | None = None
    is_cut: bool = False


class ChatModel(Protocol):
    """A chat model."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request.

        Parameters
        ----------
        request
            The request.

        Returns
        -------
        ChatReply
            The reply.

        Raises
        ------
        ModelFailure
            If there is no reply; the class says why.
        """
        ...


def add_usage(first: UsageModel, second: UsageModel) -> UsageModel:
    """Return the sum of two usages. Its price is absent if no call had one."""
    costs = [usage.cost for usage in (first, second) if usage.cost is not None]
    return UsageModel(
        model=first.model or second.model,
        calls=first.calls + second.calls,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        seconds=round(first.seconds + second.seconds, 3),
        cost=sum(costs) if costs else None,
    )


def no_usage(model: str = "") -> UsageModel:
    """Return the usage of no call."""
    return UsageModel(model=model, calls=0, input_tokens=0, output_tokens=0, seconds=0.0)
