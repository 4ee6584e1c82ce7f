"""Candidate actions of a chat model: one for each request, with what the page shows and what is worth a note."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from waygraph.agents.actions.brackets import describe_actions, parse_brackets
from waygraph.agents.actions.types import ACTION_TYPES, ActionSyntaxError, AgentAction, ScrollAction
from waygraph.agents.loop.prompt import UNTRUSTED, marked
from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatRequest, add_usage
from waygraph.agents.observation.render import render
from waygraph.agents.search.generator import ProposalRequest, Proposals, ProposedAction
from waygraph.agents.search.page_window import PagePart, PageWindow
from waygraph.agents.search.search_actions import DIALOG_STATE_ACTIONS, SEARCH_ACTIONS
from waygraph.agents.search.trajectory import Note, history_text, notes_text
from waygraph.core.schemas import UsageModel

_INSTRUCTIONS = """You do a task in a web browser. You see the page as an accessibility tree, in which everything that
can be acted on has an id in brackets. Reply with

- summary: what the page shows, as far as the task is concerned, in one or two sentences;
- note: facts of this page that the answer or a later step needs, with their values. They are shown to you on later
  pages, which do not show this one. Empty if there are none, or if a note has them;
- thinking: what is left to do, and why the action is the best next one;
- action: the one next action. When the task is done, stop with the answer alone, or without one if none is asked for.

The actions, each written exactly in this form:
{actions}

{untrusted}"""
#: Windows of one page that a model looks at before it must act.
_MAX_WINDOWS = 50
#: Between actions of which a model wrote several: the first one is taken.
_NEXT_ACTION = re.compile(rf"(?<=\])[\s;,.]*(?:(?:and|then)\s+)*(?=(?:{'|'.join(ACTION_TYPES)})\b\s*(?:\[|$))")


class _Step(BaseModel):
    """The reply with an action."""

    model_config = ConfigDict(extra="forbid")
    summary: str
    note: str
    thinking: str
    action: str


class PromptContext(Protocol):
    """What a context adds to the prompt, and how much of the history it shows.

    Attributes
    ----------
    name
        Its name.
    history
        Number of latest steps that it shows.
    """

    name: str
    history: int

    async def text(self, task: str) -> tuple[str, UsageModel | None]:
        """Return the part of the prompt that says the task, and the usage of a model call for it."""
        ...


class ChatCandidates:
    """Proposes one action, from one context. Several of them over one model are WebOperator's contexts.

    A page that does not fit the model is shown in windows: `scroll` moves the window, and is no action of the search.

    Parameters
    ----------
    model
        The model.
    context
        What its prompt says of the task.
    name
        Name in the records of the search; empty: that of the context.
    temperature
        Temperature of sampling.
    seed
        Seed of sampling, to tell equal requests of two contexts apart; None: none.
    window
        How much of a page fits.
    """

    def __init__(
        self,
        model: ChatModel,
        context: PromptContext,
        *,
        name: str = "",
        temperature: float = 0.7,
        seed: int | None = None,
        window: PageWindow | None = None,
    ) -> None:
        self._model = model
        self._context = context
        self._sampling: dict[str, Any] = {"temperature": temperature, "seed": seed}
        self._window = window or PageWindow()
        self.name = name or context.name

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return a candidate action; see `CandidateGenerator`."""
        task, usage = await self._context.text(request.task)
        page, url = render(request.observation.shown), request.observation.url
        notes: list[str] = []
        above: list[int] = []  # the first lines of the windows above
        first, part = 0, self._window.part(page)
        for _ in range(_MAX_WINDOWS):

            def build() -> ChatRequest:
                nonlocal part
                part = self._window.part(page, first)  # noqa: B023 - called at once
                return self._request(task, request, part, [Note(each, url) for each in notes])

            written, reply = await self._window.complete(self._model, build, _Step)
            usage = reply.usage if usage is None else add_usage(usage, reply.usage)
            if written.note.strip():
                notes.append(written.note.strip())
            read = Proposals((), (), usage, written.summary, tuple(notes))
            try:
                action = self._parsed(written.action, request, is_whole=part.is_whole)
            except ActionSyntaxError as error:
                return replace(read, problems=(error.message,))
            if not isinstance(action, ScrollAction):
                proposed = ProposedAction(action, None, written.thinking, "" if part.is_whole else part.text)  # type: ignore[arg-type] # one of SEARCH_ACTIONS
                return replace(read, actions=(proposed,))
            if action.direction == "down" and part.end < part.lines:
                above.append(first)
                first = part.end
            elif action.direction == "up" and above:
                first = above.pop()
            else:
                return replace(read, problems=(f"There is no part of the page further {action.direction}.",))
        return replace(read, problems=(f"The page was scrolled {_MAX_WINDOWS} times; choose another action.",))

    def _parsed(self, text: str, request: ProposalRequest, *, is_whole: bool) -> AgentAction:
        first = _NEXT_ACTION.split(text, maxsplit=1)[0].strip()
        return parse_brackets(first or text, _allowed(request, is_whole=is_whole))

    def _request(self, task: str, request: ProposalRequest, part: PagePart, notes: list[Note]) -> ChatRequest:
        trajectory = request.trajectory
        actions = describe_actions(_allowed(request, is_whole=part.is_whole))
        latest = trajectory.history[-self._context.history :]
        written = [*trajectory.notes, *(each for each in notes if each not in trajectory.notes)]
        sites = f"Sites with a map, for navigate: {', '.join(request.sites)}" if request.sites else ""
        page = marked("\n".join([request.observation.url, *([] if part.is_whole else [part.place]), part.text]))
        problems = [f"- {each}" for each in request.problems]
        failed = "\n".join(["Your actions before could not be done:", *problems]) if problems else ""
        parts = [task, sites, history_text(latest), notes_text(written), page, failed]
        messages = (
            ChatMessage.system(_INSTRUCTIONS.format(actions=actions, untrusted=UNTRUSTED)),
            ChatMessage.user("\n\n".join(text for text in parts if text)),
        )
        return ChatRequest(messages, **self._sampling)


def _allowed(request: ProposalRequest, *, is_whole: bool) -> tuple[str, ...]:
    """Return the actions that the page allows: options are chosen only where there are lists of them."""
    if request.observation.dialog is not None:
        return DIALOG_STATE_ACTIONS
    has_lists = any(each.is_list for each in request.observation.elements)
    possible = {"select": has_lists, "navigate": bool(request.sites), "scroll": not is_whole}
    return tuple(name for name in (*SEARCH_ACTIONS, "scroll") if possible.get(name, True))
