"""The greedy agent: ask the map if there is one, click what is nearest to the task, go back from dead ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waygraph.agents.actions.report import ActionReport
from waygraph.agents.actions.session import AgentSession
from waygraph.agents.actions.types import (
    AgentAction,
    ClickAction,
    CloseTabAction,
    DismissAction,
    GoBackAction,
    NavigateAction,
)
from waygraph.agents.greedy.choice import GreedyMemory, ScoredElement
from waygraph.agents.greedy.nearness import TextNearness
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.run_record import AgentRun, AgentStep, AttemptEnd, StepListener, ignore_step
from waygraph.core.errors import WaygraphError
from waygraph.core.schemas import MAX_QUERY_CHARS
from waygraph.pipeline.encode.protocol import Encoder

if TYPE_CHECKING:
    from waygraph.sdk.facade import AsyncWaygraph

log = logging.getLogger(__name__)

#: Roles whose activation leads somewhere or shows something. Fields are not filled: there is nothing to say in them.
_FIELDS = frozenset({"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider", "checkbox", "radio"})


@dataclass(frozen=True, slots=True)
class GreedyOptions:
    """How far the agent goes.

    Attributes
    ----------
    max_steps
        Limit of actions.
    sites
        Keys of the sites whose maps are asked first; empty: no map.
    """

    max_steps: int = 20
    sites: Sequence[str] = ()


class GreedyAgent:
    """Acts without a language model.

    In each state it clicks the element whose text is nearest to the task. It tries no element twice in a state, follows
    no link to a page that it has seen, and goes back where nothing is left. It stops where the title or the main
    heading of the page is at least as near to the task as everything that is left to try, or, where nothing is, as near
    as those of all pages before. With a map it stops where the map leads, and searches like this only where the walk
    did not arrive or the map has no page that fits.

    Parameters
    ----------
    session
        The browser session; its page shows where the task begins.
    encoder
        Compares texts with the task.
    options
        Limits, and which maps are asked.
    maps
        The maps, to choose among several sites; None: the first site is taken.
    """

    def __init__(
        self,
        session: AgentSession,
        encoder: Encoder,
        options: GreedyOptions | None = None,
        *,
        maps: AsyncWaygraph | None = None,
    ) -> None:
        self._session = session
        self._encoder = encoder
        self._options = options or GreedyOptions()
        self._maps = maps

    async def run(self, task: str, on_step: StepListener = ignore_step) -> AgentRun:
        """Do a task.

        Parameters
        ----------
        task
            What to find, in plain words.
        on_step
            Called after every step.

        Returns
        -------
        AgentRun
            Where the run ended, and its steps. The answer is the text of the last page that is nearest to the task. The
            details of a step are the nearness of the element (`score`; absent for actions on no element) and of the
            page (`page_score`).
        """
        nearness = await asyncio.to_thread(TextNearness, self._encoder, task)
        run = _Run(self._session, nearness, self._options, on_step)
        end = await run.work(task, await self._best_site(task))
        last = run.observation
        return AgentRun(task, end, await run.answer(), last.url, last.snapshot.id, tuple(run.steps))

    async def _best_site(self, task: str) -> str:
        """Return the site whose map is surest of its first hit, of equals the best scored; empty without maps."""
        sites = self._options.sites
        if self._maps is None or len(sites) < 2:
            return sites[0] if sites else ""
        sure = {site: await self._sureness(self._maps, site, task) for site in sites}
        return max(sites, key=lambda site: sure[site])

    @staticmethod
    async def _sureness(maps: AsyncWaygraph, site: str, task: str) -> tuple[bool, float, float]:
        try:
            found = await maps.search(site, task)
        except WaygraphError as error:
            log.warning("agent/map_unreadable %s: %s", site, error.message)
            return False, -1.0, 0.0
        return (
            bool(found.hits and not found.nothing_matches),
            found.confidence or 0.0,
            max((hit.score for hit in found.hits), default=0.0),
        )


class _Run:
    """One run.

    Parameters
    ----------
    session
        The browser session.
    nearness
        Scores texts.
    options
        Limits.
    on_step
        Called after every step.
    """

    def __init__(
        self, session: AgentSession, nearness: TextNearness, options: GreedyOptions, on_step: StepListener
    ) -> None:
        self._session = session
        self._nearness = nearness
        self._options = options
        self._on_step = on_step
        self._memory = GreedyMemory()
        self._page_score = 0.0
        self._nearest_page = 0.0
        self.steps: list[AgentStep] = []
        self.observation: PageObservation

    async def work(self, task: str, site: str) -> AttemptEnd:
        self.observation = await self._session.observe()
        # The map's search compares the task with whole pages of the whole site, a step with names on one page only.
        if site and (await self._do(NavigateAction(site=site, query=task[:MAX_QUERY_CHARS]))).done:
            return AttemptEnd.ANSWERED
        while len(self.steps) < self._options.max_steps:
            if self.observation.dialog is not None:
                await self._do(DismissAction())
                continue
            self._memory.note_page(self.observation.url)
            self._page_score = max(await self._score(_titles(self.observation)), default=0.0)
            best = await self._best()
            if self._page_score >= (best.score if best is not None else self._nearest_page) and self.steps:
                return AttemptEnd.ANSWERED
            self._nearest_page = max(self._nearest_page, self._page_score)
            if best is not None:
                self._memory.note_tried(self.observation.snapshot.id, best.element)
                await self._do(ClickAction(element=best.element.ref), best)
            elif not await self._back():
                return AttemptEnd.EXHAUSTED
        return AttemptEnd.STEP_LIMIT

    async def answer(self) -> str:
        """Return the text of the page that is nearest to the task."""
        texts = [segment.text for segment in self.observation.snapshot.segments]
        scores = await self._score(texts)
        return max(zip(scores, texts, strict=True), default=(0.0, ""), key=lambda pair: pair[0])[1]

    async def _back(self) -> bool:
        """Go back to the page before, or from a tab that began here to the one that opened it."""
        if (await self._do(GoBackAction())).done:
            return True
        return self._session.tabs.count > 1 and (await self._do(CloseTabAction())).done

    async def _best(self) -> ScoredElement | None:
        elements = [each for each in self.observation.elements if each.role not in _FIELDS]
        scores = await self._score([each.name for each in elements])
        scored = (ScoredElement(each, score) for each, score in zip(elements, scores, strict=True))
        return self._memory.choose(self.observation.snapshot.id, scored)

    async def _score(self, texts: list[str]) -> list[float]:
        return await asyncio.to_thread(self._nearness.scores, texts)

    async def _do(self, action: AgentAction, chosen: ScoredElement | None = None) -> ActionReport:
        before = self.observation
        report = await self._session.act(action)
        scores = {"score": round(chosen.score, 4)} if chosen else {}
        step = AgentStep(
            state=before.snapshot.id,
            url=before.url,
            action=f"click {chosen.element}" if chosen else action.action,
            status=report.status,
            message=str(report),
            details={**scores, "page_score": round(self._page_score, 4)},
        )
        self.steps.append(step)
        await self._on_step(step, before)
        self.observation = report.observation or before
        return report


def _titles(observation: PageObservation) -> list[str]:
    """Return what the page calls itself: its title and its headings of level 1. Other headings name parts, or links."""
    rows = observation.snapshot.outline
    headings = [row.name for row in rows if row.role == "heading" and ("level", "1") in row.states]
    return [text for text in (observation.title, *headings) if text]
