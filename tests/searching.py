"""Tree searches over fixture sites: generators that propose what a test says, and one call that searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.sites.server import FixtureServer
from waygraph.agents.actions import AgentSession, ClickAction, GotoAction, SessionOptions, StopAction
from waygraph.agents.actions.types import AcceptAction, DismissAction
from waygraph.agents.run_record import AgentRun, StepListener, ignore_step
from waygraph.agents.search import (
    CandidateGenerator,
    JudgedAction,
    Judgement,
    ProposalRequest,
    Proposals,
    ProposedAction,
    Reward,
    SearchOptions,
    Trajectory,
    TreeSearchAgent,
)
from waygraph.agents.search.state_description import StateDescription

TASK = "a task"


class Scripted:
    """A generator that proposes, in each state, elements by name with scores: `{"Shelf": {"Details": 0.9}}`.

    States are named by their title, and by the last paragraph that they show if they have one.
    """

    name = "script"

    def __init__(self, script: Mapping[str, Mapping[str, float]]) -> None:
        self.script = script
        self.asked: list[str] = []

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        texts = [each.text for each in request.observation.snapshot.segments if each.role == "text"]
        state = " / ".join([request.observation.title, *texts[-1:]])
        self.asked.append(state)
        return proposed(self.script.get(state, self.script.get(request.observation.title, {})), request)


class Named:
    """A generator that proposes the elements with these names in every state."""

    name = "names"

    def __init__(self, scores: Mapping[str, float]) -> None:
        self.scores = scores

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        return proposed(self.scores, request)


def proposed(scores: Mapping[str, float], request: ProposalRequest) -> Proposals:
    """Return clicks on elements by name, answers (`stop TEXT`) and loads (`goto URL`), with their scores.

    `accept`, `accept TEXT` and `dismiss` are proposed where a dialog is open, and nothing else but answers is.
    """
    actions = []
    for name, score in scores.items():
        kind, _, text = name.partition(" ")
        if kind in {"accept", "dismiss"}:
            answer = AcceptAction(text=text or None) if kind == "accept" else DismissAction()
            actions += [ProposedAction(answer, score)] if request.observation.dialog is not None else []
        elif name.startswith("stop "):
            actions.append(ProposedAction(StopAction(answer=name.removeprefix("stop ")), score))
        elif name.startswith("goto "):
            actions.append(ProposedAction(GotoAction(url=name.removeprefix("goto ")), score))
        else:
            refs = [each.ref for each in request.observation.elements if each.name == name]
            actions += [ProposedAction(ClickAction(element=ref), score) for ref in refs[:1]]
    return Proposals(tuple(actions))


class NoReward:
    """Values states by nothing: scripts score their actions themselves."""

    judges_answers = False

    async def judge_states(self, trajectory: Trajectory, states: Sequence[StateDescription]) -> Judgement:  # noqa: ARG002
        """Return values; see `Reward`."""
        return Judgement((0.0,) * len(states))

    async def judge_actions(
        self,
        trajectory: Trajectory,  # noqa: ARG002
        state: StateDescription,  # noqa: ARG002
        actions: Sequence[JudgedAction],
    ) -> Judgement:
        """Return values; see `Reward`."""
        return Judgement((0.0,) * len(actions))


async def searched(
    site: FixtureServer,
    generators: Sequence[CandidateGenerator],
    *,
    path: str = "/",
    reward: Reward | None = None,
    on_step: StepListener = ignore_step,
    session_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[AgentRun, int, str]:
    """Search from a path of a site; return the run, the number of tabs that are left, and the text of the page."""
    browser = await BROWSERS.browser()
    context = await browser.new_context(viewport={"width": 800, "height": 600})
    try:
        page = await context.new_page()
        await page.goto(site.at(path))
        async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY, **session_options or {})) as session:
            agent = TreeSearchAgent(session, generators, reward or NoReward(), SearchOptions(**options))
            run = await agent.run(TASK, on_step)
            await session.end()
            return run, len(context.pages), await session.tabs.current.page.inner_text("body")
    finally:
        await context.close()


def search(
    site: FixtureServer,
    generators: Mapping[str, Mapping[str, float]] | Sequence[CandidateGenerator],
    **options: Any,
) -> tuple[AgentRun, int, str]:
    """Search with generators, or with the script of one; see `searched`."""
    used = [Scripted(generators)] if isinstance(generators, Mapping) else generators
    return BROWSERS.run(searched(site, used, **options))
