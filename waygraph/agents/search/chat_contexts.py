"""The contexts of WebOperator (Appendix B.3): the history, experience with the sites, and the goal in other words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatRequest
from waygraph.agents.models.structured import complete_as
from waygraph.agents.search.chat_candidates import ChatCandidates, PromptContext
from waygraph.agents.search.page_window import PageWindow
from waygraph.client.map_source import AsyncMapApi
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import SearchSettings
from waygraph.core.text import shortened

_REPHRASE = """You prepare a task for somebody who does it in a web browser. Reply with

- paraphrase: the task in other words, with every name, number and condition, and nothing added;
- subgoals: what has to be reached, in order;
- ambiguities: what could be understood in more than one way, and what is most likely meant;
- cautions: what is easily done wrong."""
#: Pages of each map that the context `experience` shows, as many as WebOperator retrieves trajectories.
_RECALLED = 5
#: Longest title and address of a page that a prompt shows, in characters.
_MAX_CHARS = 600


class HistoryContext:
    """The task as it is, and the five latest steps."""

    name = "history"
    history = 5

    async def text(self, task: str) -> tuple[str, UsageModel | None]:
        """Return the task; see `PromptContext`."""
        return f"Task: {task}", None


class ExperienceContext:
    """The task, three steps, and the pages that the maps' search finds for it.

    WebOperator retrieves trajectories that were collected by exploring the sites. Here the exploration is the map.

    Parameters
    ----------
    maps
        The maps.
    sites
        Keys of the sites.
    """

    name = "experience"
    history = 3

    def __init__(self, maps: AsyncMapApi, sites: Sequence[str]) -> None:
        self._maps = maps
        self._sites = tuple(sites)
        self._recalled: dict[str, str] = {}

    async def text(self, task: str) -> tuple[str, UsageModel | None]:
        """Return the task and what is known; see `PromptContext`."""
        if task not in self._recalled:
            lines = []
            for site in self._sites:
                hits = (await self._maps.search(site, task, k=_RECALLED)).hits
                lines += [
                    json.dumps(
                        {"page": shortened(hit.title, _MAX_CHARS), "at": shortened(hit.url, _MAX_CHARS)},
                        ensure_ascii=False,
                    )
                    for hit in hits
                    if not hit.refusal
                ]
            self._recalled[task] = "\n".join(
                ["Pages that an earlier visit found, the nearest to the task first:", *lines]
            )
        return f"Task: {task}\n\n{self._recalled[task]}", None


class _Rephrased(BaseModel):
    """The reply with a prepared task."""

    model_config = ConfigDict(extra="forbid")
    paraphrase: str
    subgoals: list[str]
    ambiguities: list[str]
    cautions: list[str]


class RephrasedContext:
    """The goal in other words, with subgoals, ambiguities and cautions (A.1.1), and four steps.

    Parameters
    ----------
    model
        The model; it is asked once for each task.
    """

    name = "rephrased"
    history = 4

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._rephrased: dict[str, str] = {}

    async def text(self, task: str) -> tuple[str, UsageModel | None]:
        """Return the prepared task; see `PromptContext`."""
        if task in self._rephrased:
            return self._rephrased[task], None
        request = ChatRequest((ChatMessage.system(_REPHRASE), ChatMessage.user(f"Task: {task}")))
        written, reply = await complete_as(self._model, request, _Rephrased)
        parts = [f"Task: {written.paraphrase}"]
        for title, items in (
            ("Subgoals", written.subgoals),
            ("Ambiguities", written.ambiguities),
            ("Cautions", written.cautions),
        ):
            if items:
                parts.append("\n".join([f"{title}:", *(f"- {each}" for each in items)]))
        self._rephrased[task] = "\n\n".join(parts)
        return self._rephrased[task], reply.usage


def chat_contexts(
    model: ChatModel,
    settings: SearchSettings,
    *,
    maps: AsyncMapApi | None = None,
    sites: Sequence[str] = (),
    window: PageWindow | None = None,
) -> list[ChatCandidates]:
    """Return one generator for each action that is wanted in a state.

    Parameters
    ----------
    model
        The model.
    settings
        The contexts, how many actions are wanted, and the temperature. Each context proposes one action. With fewer
        contexts than actions they take turns, with a seed of their own each time.
    maps
        Maps for the context `experience`, which is left out without any.
    sites
        Keys of the sites that have maps.
    window
        How much of a page fits.

    Returns
    -------
    list of ChatCandidates
        The generators.
    """
    made: dict[str, PromptContext] = {"history": HistoryContext(), "rephrased": RephrasedContext(model)}
    if maps is not None and sites:
        made["experience"] = ExperienceContext(maps, sites)
    contexts = [made[name] for name in settings.contexts if name in made] or [made["history"]]
    generators = []
    for number in range(settings.branching):
        turn, context = number // len(contexts) + 1, contexts[number % len(contexts)]
        generators.append(
            ChatCandidates(
                model,
                context,
                name=context.name if turn == 1 else f"{context.name} {turn}",
                temperature=settings.temperature,
                seed=None if turn == 1 else turn,
                window=window,
            )
        )
    return generators
