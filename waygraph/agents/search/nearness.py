"""Without a model: candidates are the elements nearest to the task, and states are judged by title and texts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from waygraph.agents.actions.types import AcceptAction, ClickAction, DismissAction, StopAction
from waygraph.agents.greedy.nearness import TextNearness
from waygraph.agents.observation.elements import ObservedElement
from waygraph.agents.search.generator import ProposalRequest, Proposals, ProposedAction
from waygraph.agents.search.reward import JudgedAction, Judgement
from waygraph.agents.search.search_actions import loaded_url
from waygraph.agents.search.state_description import StateDescription
from waygraph.agents.search.trajectory import Trajectory
from waygraph.pipeline.encode.protocol import Encoder

#: Roles that take input: without a model there is nothing to say in them.
_FIELDS = frozenset({"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider", "checkbox", "radio"})


class TaskNearness:
    """Nearness of texts to tasks, by the encoder of queries. Texts of the latest task are encoded once.

    Parameters
    ----------
    encoder
        The encoder.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._latest: tuple[str, TextNearness] | None = None

    async def scores(self, task: str, texts: Sequence[str]) -> list[float]:
        """Return the nearness of each text to a task; 0 for a text without words."""
        return await asyncio.to_thread(self._scores, task, list(texts))

    def _scores(self, task: str, texts: list[str]) -> list[float]:
        if self._latest is None or self._latest[0] != task:
            self._latest = task, TextNearness(self._encoder, task)
        return self._latest[1].scores(texts)


class NearnessReward:
    """Judges states by their title or first heading and by the text on them that is nearest to the task, half and half.

    Actions are judged by their own text.

    Parameters
    ----------
    nearness
        Compares texts with the task.
    """

    #: The text of an answer says nothing about its page.
    judges_answers = False

    def __init__(self, nearness: TaskNearness) -> None:
        self._nearness = nearness

    async def judge_states(self, trajectory: Trajectory, states: Sequence[StateDescription]) -> Judgement:
        """Return how near states are to the end of a task; see `Reward`."""
        values = []
        for each in states:
            title, heading, *texts = await self._nearness.scores(
                trajectory.task, [each.title, each.heading, *each.texts]
            )
            values.append((max(title, heading) + max(title, *texts, 0.0)) / 2)
        return Judgement(tuple(values))

    async def judge_actions(
        self,
        trajectory: Trajectory,
        state: StateDescription,  # noqa: ARG002
        actions: Sequence[JudgedAction],
    ) -> Judgement:
        """Return how much actions promise; see `Reward`."""
        return Judgement(tuple(await self._nearness.scores(trajectory.task, [each.text for each in actions])))


class NearestElements:
    """Proposes clicks on the elements whose names are nearest to the task, and to end in every state.

    It follows no link to a page that was visited, and fills no fields. Dialogs are accepted, or dismissed if that is
    not allowed. The answer is the text of the page that is
    nearest to the task.

    Parameters
    ----------
    nearness
        Compares texts with the task.
    name
        Name in the records of the search.
    """

    def __init__(self, nearness: TaskNearness, *, name: str = "nearness") -> None:
        self._nearness = nearness
        self.name = name

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        observation = request.observation
        if observation.dialog is not None:  # what opened it was worth a try, and is done when it is accepted
            answer_to_it = DismissAction() if request.problems else AcceptAction()
            return Proposals((ProposedAction(answer_to_it, 1.0),))
        elements = [each for each in observation.elements if _is_open(each, request)]
        scores = await self._nearness.scores(request.task, [each.name for each in elements])
        ranked = sorted(zip(scores, elements, strict=True), key=lambda pair: -pair[0])[: request.limit]
        texts = [each.text for each in observation.snapshot.segments]
        near = await self._nearness.scores(request.task, texts)
        answer = max(zip(near, texts, strict=True), key=lambda pair: pair[0], default=(0.0, ""))[1]
        clicks = (ProposedAction(ClickAction(element=each.ref), score) for score, each in ranked)
        return Proposals((ProposedAction(StopAction(answer=answer)), *clicks))


def _is_open(element: ObservedElement, request: ProposalRequest) -> bool:
    candidate = element.candidate
    if candidate.disabled or candidate.covered or not element.name or element.role in _FIELDS:
        return False
    url = loaded_url(ClickAction(element=element.ref), candidate.action, request.observation.snapshot.raw_url)
    return not url or not request.has_seen(url)
