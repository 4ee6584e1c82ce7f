"""What the calls of one step took."""

from __future__ import annotations

from waygraph.agents.models.chat import ChatModel, ChatReply, ChatRequest, add_usage
from waygraph.core.schemas import UsageModel


class UsageMeter:
    """A model that adds up the usage of its calls.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._usage: UsageModel | None = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request; see `ChatModel.complete`."""
        reply = await self._model.complete(request)
        self._usage = reply.usage if self._usage is None else add_usage(self._usage, reply.usage)
        return reply

    def take(self) -> UsageModel | None:
        """Return the usage since the last call of this method, and begin anew; None: no call was made."""
        usage, self._usage = self._usage, None
        return usage
