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
        self.count(reply.usage)
        return reply

    def beside(self, model: ChatModel) -> ChatModel:
        """Return another model whose calls count here as well."""
        return _Counted(model, self)

    def count(self, usage: UsageModel) -> None:
        """Add the usage of a call."""
        self._usage = usage if self._usage is None else add_usage(self._usage, usage)

    def take(self) -> UsageModel | None:
        """Return the usage since the last call of this method, and begin anew; None: no call was made."""
        usage, self._usage = self._usage, None
        return usage


class _Counted:
    """A model whose usage is counted by the meter of another one."""

    def __init__(self, model: ChatModel, meter: UsageMeter) -> None:
        self._model = model
        self._meter = meter

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await self._model.complete(request)
        self._meter.count(reply.usage)
        return reply
