"""The part of a page that fits the model: the whole text, or a window on its lines that the model moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from waygraph.agents.models.chat import ChatModel, ChatReply, ChatRequest
from waygraph.agents.models.structured import complete_as
from waygraph.core.errors import ContextTooLong
from waygraph.core.text import shortened

Record = TypeVar("Record", bound=BaseModel)

#: Characters of a page if the model's context is not known; WebOperator's limit of whole trees.
DEFAULT_CHARS = 80_000
#: Characters of a page per token of the model's context: at three characters a token, half of it is left for the
#: instructions, the history and the reply.
_CHARS_PER_TOKEN = 1.5
#: A window is not made smaller than this.
_LEAST_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class PagePart:
    """Consecutive lines of a page.

    Attributes
    ----------
    text
        The lines.
    first
        Number of the first line, from 0.
    end
        Number of the line after the last one.
    lines
        Number of lines of the page.
    """

    text: str
    first: int
    end: int
    lines: int

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole page."""
        return self.end - self.first == self.lines

    @property
    def place(self) -> str:
        """Which part of the page it is, for the model."""
        return f"Lines {self.first + 1} to {self.end} of {self.lines} of the page:"


class PageWindow:
    """How much of a page a request holds. It shrinks when the model's server says that a request is too long.

    Parameters
    ----------
    context_tokens
        Tokens of the model's context; 0: it is not known.
    """

    def __init__(self, context_tokens: int = 0) -> None:
        known = max(int(context_tokens * _CHARS_PER_TOKEN), _LEAST_CHARS)
        self.chars = min(known, DEFAULT_CHARS) if context_tokens else DEFAULT_CHARS

    def part(self, text: str, first: int = 0) -> PagePart:
        """Return the lines from a number on that fit; at least one, which is cut if it alone does not fit."""
        lines = text.split("\n")
        end, size = first, 0
        while end < len(lines) and (end == first or size + len(lines[end]) < self.chars):
            size += len(lines[end]) + 1
            end += 1
        return PagePart(shortened("\n".join(lines[first:end]), self.chars), first, end, len(lines))

    async def complete(
        self, model: ChatModel, build: Callable[[], ChatRequest], record: type[Record]
    ) -> tuple[Record, ChatReply]:
        """Ask a model; a request that is too long for it is built again with half of the page.

        Parameters
        ----------
        model
            The model.
        build
            Returns the request, by the present size of the window.
        record
            Form of the reply, see `complete_as`.

        Returns
        -------
        tuple of record and ChatReply
            The reply.

        Raises
        ------
        ContextTooLong
            If the request is too long with the smallest window.
        ModelFailure
            If a call fails.
        """
        while True:
            try:
                return await complete_as(model, build(), record)
            except ContextTooLong:
                if self.chars <= _LEAST_CHARS:
                    raise
                self.chars = max(self.chars // 2, _LEAST_CHARS)
