"""A model whose replies are prepared: for tests, and for agents that follow a script."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from waygraph.agents.models.chat import ChatReply, ChatRequest, no_usage
from waygraph.core.errors import CassetteMiss, ModelFailure

#: A reply, an error to raise, or a function that makes a reply of the request.
ScriptedReply = str | ModelFailure | Callable[[ChatRequest], str]


class ScriptedModel:
    """Gives prepared replies in order, and keeps the requests.

    Parameters
    ----------
    replies
        The replies.
    """

    def __init__(self, replies: Iterable[ScriptedReply]) -> None:
        self._replies = deque(replies)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the next reply; see `ChatModel.complete`."""
        self.requests.append(request)
        if not self._replies:
            raise CassetteMiss(f"The script has no reply to request {len(self.requests)}.")
        reply = self._replies.popleft()
        if isinstance(reply, ModelFailure):
            raise reply
        text = reply if isinstance(reply, str) else reply(request)
        return ChatReply(text, no_usage("script").model_copy(update={"calls": 1}))
