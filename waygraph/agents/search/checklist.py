"""A reward by a chat model: a checklist of milestones for the task, and how many of them a trajectory has reached."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from waygraph.agents.loop.prompt import UNTRUSTED, marked
from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatReply, ChatRequest, TokenLogprob, add_usage
from waygraph.agents.search.page_window import PageWindow
from waygraph.agents.search.reward import JudgedAction, Judgement
from waygraph.agents.search.state_description import StateDescription
from waygraph.agents.search.trajectory import Trajectory, history_text, notes_text
from waygraph.core.schemas import UsageModel

Verdict = Literal["yes", "in_progress", "no"]
_WORTH: dict[Verdict, float] = {"yes": 1.0, "in_progress": 0.5, "no": 0.0}
#: A verdict as a JSON string; its first group is the verdict.
_WRITTEN = re.compile(r'"(yes|in_progress|no)"')
_ALTERNATIVES = 8

#: Latest steps that the judge sees; the notes on all pages are in the prompt besides.
_HISTORY = 10

_MILESTONES = f"""You plan how the progress of a task in a web browser is judged. You see the task and the page where it
begins. Write two to five milestones, in order, each as one statement that can be checked by what was done, noted and
shown. The last one is that the task is done and, if it asks for information, that the answer is right.

{UNTRUSTED}"""
_JUDGE = f"""You judge the progress of a task in a web browser by the steps so far, the notes on pages that were read,
the page that is shown, and, if one is proposed, the next action. For each milestone, in the given order, answer "yes"
if it is reached, "in_progress" if the steps and the action lead towards it, and "no" otherwise. An answer (stop) is
right only if the notes and the page show it.

{UNTRUSTED}"""


class _Checklist(BaseModel):
    """The reply with milestones."""

    model_config = ConfigDict(extra="forbid")
    milestones: list[str]


class _Verdicts(BaseModel):
    """The reply with one verdict for each milestone."""

    model_config = ConfigDict(extra="forbid")
    verdicts: list[Verdict]


class ChecklistReward:
    """Judges states and actions by milestones, which are asked for once for each task.

    The value is the mean over the milestones of the probability of "yes" and half of that of "in progress". Without
    log probabilities each verdict counts as certain. A milestone without a verdict counts as "no".

    Parameters
    ----------
    model
        The model.
    logprobs
        Whether to ask for log probabilities; not all servers know them.
    window
        How much of a page fits.
    """

    judges_answers = True

    def __init__(self, model: ChatModel, *, logprobs: bool = False, window: PageWindow | None = None) -> None:
        self._model = model
        self._logprobs = logprobs
        self._window = window or PageWindow()
        self._checklists: dict[str, list[str]] = {}

    async def judge_states(self, trajectory: Trajectory, states: Sequence[StateDescription]) -> Judgement:
        """Return how near states are to the end of a task; see `Reward`. One call for each state."""
        return await self._judge(trajectory, [(each, "") for each in states])

    async def judge_actions(
        self, trajectory: Trajectory, state: StateDescription, actions: Sequence[JudgedAction]
    ) -> Judgement:
        """Return how much actions promise; see `Reward`. One call for each action."""
        proposed = [
            (
                replace(state, text=each.view or state.text),
                f"The next action on this page: {each.text}" + (f"\nWhy: {each.thinking}" if each.thinking else ""),
            )
            for each in actions
        ]
        return await self._judge(trajectory, proposed)

    async def _judge(self, trajectory: Trajectory, questions: Sequence[tuple[StateDescription, str]]) -> Judgement:
        if not questions:
            return Judgement(())
        milestones, usage = await self._milestones(trajectory.task, questions[0][0])
        listed = "\n".join(["Milestones:", *(f"{number}. {each}" for number, each in enumerate(milestones, start=1))])
        before = "\n".join(["Milestones before the last step:", *trajectory.progress]) if trajectory.progress else ""
        known = [f"Task: {trajectory.task}", listed, before, history_text(trajectory.history[-_HISTORY:])]
        values, progress = [], []
        for state, proposed in questions:

            def build() -> ChatRequest:
                parts = [*known, notes_text(trajectory.notes), self._page(state), proposed]  # noqa: B023 - called at once
                text = "\n\n".join(each for each in parts if each)
                top_logprobs = _ALTERNATIVES if self._logprobs else 0
                return ChatRequest((ChatMessage.system(_JUDGE), ChatMessage.user(text)), top_logprobs=top_logprobs)

            judged, reply = await self._window.complete(self._model, build, _Verdicts)
            usage = reply.usage if usage is None else add_usage(usage, reply.usage)
            worth = verdict_values(judged.verdicts, reply)[: len(milestones)]
            values.append(sum(worth) / max(1, len(milestones)))
            shown = zip(milestones, judged.verdicts, strict=False)
            progress.append(tuple(f"- {each}: {verdict}" for each, verdict in shown))
        return Judgement(tuple(values), usage, tuple(progress))

    async def _milestones(self, task: str, start: StateDescription) -> tuple[list[str], UsageModel | None]:
        if task in self._checklists:
            return self._checklists[task], None

        def build() -> ChatRequest:
            text = f"Task: {task}\n\n{self._page(start)}"
            return ChatRequest((ChatMessage.system(_MILESTONES), ChatMessage.user(text)))

        written, reply = await self._window.complete(self._model, build, _Checklist)
        self._checklists[task] = written.milestones or [task]
        return self._checklists[task], reply.usage

    def _page(self, state: StateDescription) -> str:
        return marked(f"{state.url}\n{self._window.part(state.text).text}")


def verdict_values(verdicts: Sequence[Verdict], reply: ChatReply) -> list[float]:
    """Return the value of each verdict of a reply.

    Parameters
    ----------
    verdicts
        The verdicts.
    reply
        The reply that they were read from.

    Returns
    -------
    list of float
        By the log probabilities at the beginning of each verdict, if the reply has them; else 1, 0.5 or 0.
    """
    certain = [_WORTH[each] for each in verdicts]
    if not reply.logprobs:
        return certain
    starts = [match.start(1) for match in _WRITTEN.finditer("".join(each.token for each in reply.logprobs))]
    if len(starts) != len(verdicts):
        return certain
    likely = (_expected(token) for token in _tokens_at(reply.logprobs, starts))
    return [known if value is None else value for known, value in zip(certain, likely, strict=True)]


def _tokens_at(tokens: Sequence[TokenLogprob], starts: Sequence[int]) -> list[TokenLogprob]:
    """Return the tokens that contain characters of the reply."""
    found, end, wanted = [], 0, list(starts)
    for token in tokens:
        end += len(token.token)
        while wanted and wanted[0] < end:
            found.append(token)
            wanted.pop(0)
    return found


def _expected(token: TokenLogprob) -> float | None:
    """Return the expected worth over a token's alternatives; None if none of them begins a verdict."""
    total = worth = 0.0
    for text, logprob in token.alternatives or ((token.token, token.logprob),):
        verdict = _begun(text)
        if verdict is not None:
            total += math.exp(logprob)
            worth += math.exp(logprob) * _WORTH[verdict]
    return worth / total if total > 0 else None


def _begun(text: str) -> Verdict | None:
    """Return the verdict that a token begins. Quotes and brackets before it may be part of the token."""
    start = text.strip().lstrip('["').rstrip('",]').lower()
    if not start:
        return None
    return next((verdict for verdict in _WORTH if verdict.startswith(start) or start.startswith(verdict)), None)
